"""Wonderland: tensors, derivatives in every mode, and models that can be read from end to end."""

from __future__ import annotations

__version__ = "0.1.0"

from . import errors
from . import trees as tree
from .array import *  # noqa: F403
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
from .primitives.primitive import Aval as ShapeDtype
from .tensor import Tensor
from .transforms.batching import vmap
from .transforms.forward import jvp
from .transforms.jit import eval_shape, jit, make_graph
from .transforms.imperative import enable_grad, no_grad
from .transforms.reverse import grad, linearize, value_and_grad, vjp
