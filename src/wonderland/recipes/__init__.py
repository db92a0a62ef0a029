"""From a name of a model and of data to a trained one: what `wonderland train` does, as functions."""

from .catalogue import MODELS, ModelEntry, build
from .evaluating import Trained, evaluate, generate, open_run, predict
from .running import Run, run
from .settings import Settings, TrainSettings

__all__ = [
    "run",
    "Run",
    "Settings",
    "TrainSettings",
    "open_run",
    "Trained",
    "evaluate",
    "predict",
    "generate",
    "MODELS",
    "ModelEntry",
    "build",
]
