"""Where training starts: initialisers, as functions of a shape and in place, and what can go wrong. Book, section 5.2.

init = nn.init.kaiming_normal()                  # an initialiser: how, but not yet what
w = init((64, 10), key)                          # drawn
layer = nn.Linear(64, 10, init=init)             # given to a layer
nn.init.kaiming_normal_(layer.weight)            # in place, as PyTorch has it
nn.init.apply(model, "*.bias", nn.init.zeros())  # by name
nn.init.initialize(model, nn.init.orthogonal())  # by kind of layer
"""

from ..diagnostics import variance_report
from .application import InitializationWarning, apply, check, initialize
from .in_place import (
    constant_,
    dirac_,
    eye_,
    kaiming_normal_,
    kaiming_uniform_,
    lecun_normal_,
    lecun_uniform_,
    normal_,
    ones_,
    orthogonal_,
    sparse_,
    trunc_normal_,
    uniform_,
    variance_scaling_,
    xavier_normal_,
    xavier_uniform_,
    zeros_,
)
from .initializer import Initializer, calculate_gain, fans
from .naming import as_initializer
from .schemes import (
    constant,
    dirac,
    eye,
    glorot_normal,
    glorot_uniform,
    he_normal,
    he_uniform,
    kaiming_normal,
    kaiming_uniform,
    lecun_normal,
    lecun_uniform,
    normal,
    ones,
    orthogonal,
    sparse,
    trunc_normal,
    uniform,
    variance_scaling,
    xavier_normal,
    xavier_uniform,
    zeros,
)

__all__ = [
    "Initializer",
    "as_initializer",
    "calculate_gain",
    "fans",
    "zeros",
    "ones",
    "constant",
    "normal",
    "uniform",
    "trunc_normal",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "glorot_normal",
    "glorot_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "orthogonal",
    "sparse",
    "eye",
    "dirac",
    "zeros_",
    "ones_",
    "constant_",
    "normal_",
    "uniform_",
    "trunc_normal_",
    "variance_scaling_",
    "xavier_normal_",
    "xavier_uniform_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "lecun_normal_",
    "lecun_uniform_",
    "orthogonal_",
    "sparse_",
    "eye_",
    "dirac_",
    "apply",
    "initialize",
    "check",
    "InitializationWarning",
    "variance_report",
]
