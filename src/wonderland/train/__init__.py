"""The training loop and the pieces it is made of: steps, callbacks, checkpoints, logs."""

from ..core.naming import hints_for as _hints_for
from .callbacks import Callback, LambdaCallback
from .checkpoints import Checkpoint, CheckpointFolder, CheckpointWarning
from .evaluation import evaluate, predict
from .finder import RateSearch, find_lr
from .history import History
from .logs import CSVLog, JSONLines, TensorBoard
from .scaling import PowerLaw, RunSize, power_law, run_size
from .search import Range, SearchResult, Trial, grid_settings, random_settings, search
from .step import as_loss, evaluation_step, supervised, training_step
from .stopping import EarlyStopping, StopOnConvergence, TimeLimit
from .trainer import Trainer, fit
from .truncation import Truncation, pieces
from .watching import TrainingWarning, Watch

# fmt: off
__all__ = [
    "fit", "Trainer", "History", "evaluate", "predict", "training_step", "evaluation_step", "supervised", "as_loss",
    "find_lr", "RateSearch", "search", "grid_settings", "random_settings", "Range", "SearchResult", "Trial",
    "power_law", "PowerLaw", "run_size", "RunSize", "Callback", "LambdaCallback", "EarlyStopping", "StopOnConvergence",
    "TimeLimit", "Checkpoint", "CheckpointFolder", "CheckpointWarning", "JSONLines", "CSVLog", "TensorBoard", "Watch",
    "TrainingWarning", "Truncation", "pieces",
]

_hints_for(globals())
