"""From a name of a model and of data to a trained one: what `wonderland train` does, as functions."""

from .catalogue import MODELS, ModelEntry, build
from .evaluating import Run, evaluate, open_run, predict
from .predictions import Predictions
from .running import run
from .settings import Settings, TrainSettings
from .writing import generate, stream

# fmt: off
__all__ = [
    "run", "Run", "Settings", "TrainSettings", "open_run", "Predictions", "evaluate", "predict", "generate", "stream",
    "MODELS", "ModelEntry", "build",
]
