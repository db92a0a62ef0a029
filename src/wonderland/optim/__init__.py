"""How parameters move: an optimizer turns gradients into new values. A file per family."""

from .adagrad import Adagrad
from .adam import Adam, AdamW
from .optimizer import Group, Optimizer
from .rmsprop import RMSprop
from .sgd import SGD

__all__ = ["Optimizer", "Group", "SGD", "Adam", "AdamW", "RMSprop", "Adagrad"]
