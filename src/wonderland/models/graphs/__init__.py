"""Models on graphs: backbones of layers, heads for nodes, edges and graphs. Book, chapter 12; notes, chapter 7."""

# ruff: noqa: F403 - every file has an exact `__all__`

from ...core.naming import offer as _offer
from .backbone import *
from .convolutional import *
from .heads import *
from .recurrent import *
from .semi_supervised import *
from .transformer import *

_offer(globals())
