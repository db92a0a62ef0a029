"""The functions of the top-level namespace, a file per family: they convert arguments and call primitives."""

# ruff: noqa: F403 - every file has an exact `__all__`

from ..core.naming import offer as _offer
from ..core.tensor import Tensor
from .activations import *
from .arithmetic import *
from .assignment import assign_item
from .calculus import *
from .complexes import *
from .composed import *
from .conversion import *
from .conversion import is_operand
from .counting import *
from .creation import *
from .einstein import *
from .gathering import *
from .indexing import getitem
from .joining import *
from .logic import *
from .manipulation import *
from .missing import *
from .namespace import *
from .positions import *
from .products import *
from .quantiles import *
from .rearrangement import *
from .reductions import *
from .running import *
from .scattering import *
from .segments import *
from .similarity import *
from .sorting import *
from .splitting import *
from .statistics import *
from .stopping import *
from .transcendental import *
from .types import *
from .updates import At

_offer(
    globals(),
    also=["__array_api_version__", "__array_namespace_info__"],
    but=["At", "Tensor", "assign_item", "getitem", "is_operand"],  # for the operators of tensors and transformations
)
