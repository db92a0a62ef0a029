"""Wonderland: tensors, derivatives in every mode, and models that can be read from end to end."""

from __future__ import annotations

import warnings

__version__ = "0.1.0"

from . import debug, errors, fft, linalg, nn, random, tracebacks
from . import trees as tree
from .array import *  # noqa: F403
from .checking import check_grads
from .differences import is_subgradient, numerical_grad, numerical_jvp, subdifferential
from .dtypes import (
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .dtypes import bool_ as bool
from .graph.cost import count, saved
from .primitives.primitive import Aval as ShapeDtype
from .tensor import Tensor
from .transforms.associative import associative_scan
from .transforms.batching import vmap
from .transforms.branches import cond, switch
from .transforms.checkpointing import checkpoint, checkpoint_sequential
from .transforms.custom import custom_jvp, custom_vjp
from .transforms.derivatives import (
    derivative,
    directional_derivative,
    hessian,
    hvp,
    is_linear,
    jacfwd,
    jacobian,
    jacrev,
)
from .transforms.forward import jvp
from .transforms.jit import eval_shape, jit, make_graph
from .transforms.loops import fori_loop, map, scan, while_loop
from .transforms.imperative import enable_grad, no_grad
from .transforms.reverse import grad, linearize, value_and_grad, vjp

tracebacks.install()
# NumPy's floating-point warnings point into our code and say nothing about the user's; `wl.debug.nans` finds NaN and inf.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"wonderland\.")
