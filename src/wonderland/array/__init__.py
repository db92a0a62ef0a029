"""The functions of the top-level namespace, a file per family. They convert their arguments and call primitives."""

from ..tensor import Tensor
from ..transforms.custom import stop_gradient
from .activations import *  # noqa: F403
from .conversion import asarray, is_operand, tensor
from .creation import (
    arange,
    diag,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    logspace,
    meshgrid,
    one_hot,
    ones,
    ones_like,
    tri,
    tril,
    triu,
    zeros,
    zeros_like,
)
from .elementwise import *  # noqa: F403
from .indexing import *  # noqa: F403
from .manipulation import *  # noqa: F403
from .products import *  # noqa: F403
from .reductions import *  # noqa: F403
from .sorting import *  # noqa: F403
from .types import can_cast, finfo, iinfo, isdtype, result_type
