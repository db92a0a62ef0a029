"""The functions of the top-level namespace, a file per family: they convert arguments and call primitives."""

from ..tensor import Tensor as Tensor
from ..transforms.custom import stop_gradient
from . import (
    activations,
    arithmetic,
    complexes,
    conversion,
    creation,
    einstein,
    gathering,
    joining,
    logic,
    manipulation,
    namespace,
    products,
    rearrangement,
    reductions,
    segments,
    similarity,
    sorting,
    transcendental,
    types,
)
from .activations import *  # noqa: F403
from .arithmetic import *  # noqa: F403
from .complexes import *  # noqa: F403
from .conversion import *  # noqa: F403
from .conversion import is_operand as is_operand
from .creation import *  # noqa: F403
from .einstein import *  # noqa: F403
from .gathering import *  # noqa: F403
from .indexing import getitem as getitem
from .joining import *  # noqa: F403
from .logic import *  # noqa: F403
from .manipulation import *  # noqa: F403
from .namespace import *  # noqa: F403
from .products import *  # noqa: F403
from .rearrangement import *  # noqa: F403
from .reductions import *  # noqa: F403
from .segments import *  # noqa: F403
from .similarity import *  # noqa: F403
from .sorting import *  # noqa: F403
from .transcendental import *  # noqa: F403
from .types import *  # noqa: F403
from .updates import At as At

__all__ = ["stop_gradient"]
__all__ += activations.__all__
__all__ += arithmetic.__all__
__all__ += complexes.__all__
__all__ += conversion.__all__
__all__ += creation.__all__
__all__ += einstein.__all__
__all__ += gathering.__all__
__all__ += joining.__all__
__all__ += logic.__all__
__all__ += manipulation.__all__
__all__ += namespace.__all__
__all__ += products.__all__
__all__ += rearrangement.__all__
__all__ += reductions.__all__
__all__ += segments.__all__
__all__ += similarity.__all__
__all__ += sorting.__all__
__all__ += transcendental.__all__
__all__ += types.__all__
