"""What layers compute, as functions of all their arguments. A file per family."""

# ruff: noqa: F403 - every file has an exact `__all__`

from .activations import *
from .attention import *
from .convolution import *
from .gating import *
from .lookup import *
from .losses import *
from .negative_sampling import *
from .noise import *
from .normalization import *
from .piecewise import *
from .pooling import *
