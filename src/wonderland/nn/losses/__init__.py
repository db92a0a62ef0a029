"""Losses as modules; each calls the function of `wl.nn.functional` that says what it computes."""

# ruff: noqa: F403 - every file has an exact `__all__`

from ...core.naming import offer as _offer
from .alignment import *
from .classification import *
from .likelihood import *
from .loss import *
from .margins import *
from .metric import *
from .regression import *

_offer(globals())
