"""Where training starts: initialisers, as functions of a shape and in place, and what can go wrong. Book, section 5.2.

init = nn.init.kaiming_normal()                  # an initialiser: how, but not yet what
w = init((64, 10), key)                          # drawn
layer = nn.Linear(64, 10, init=init)             # given to a layer
nn.init.kaiming_normal_(layer.weight)            # in place, as PyTorch has it
nn.init.apply(model, "*.bias", nn.init.zeros())  # by name
nn.init.initialize(model, nn.init.orthogonal())  # by kind of layer
"""

# ruff: noqa: F403 - every file has an exact `__all__`

from ...core.naming import offer as _offer
from ..analysis.diagnostics import variance_report as variance_report
from .application import *
from .in_place import *
from .initializer import *
from .naming import *
from .schemes import *

_offer(globals())
