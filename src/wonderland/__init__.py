"""Wonderland: tensors, derivatives in every mode, and models that can be read from end to end.

    import wonderland as wl

Importing it loads the tensor, the array functions, and `grad`, `vjp`, `jvp` and `vmap`; every other part loads when its
name is first used.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING

from .core import starting  # isort: skip  # before all that takes long to load
from . import errors as errors
from . import tree as tree
from .arrays import *  # noqa: F403 - the top-level functions are those of arrays/
from .arrays import arithmetic_methods as _arithmetic_methods  # these three give tensors their operators and methods
from .arrays import methods as methods
from .arrays import torch_methods as _torch_methods
from .arrays.namespace import *  # noqa: F403 - its dunder names too, for type checkers
from .core import __version__ as __version__
from .core import tracebacks
from .core.dtypes import (
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
from .core.dtypes import bool_ as bool
from .core.evaluation import made_by as _made_by
from .core.naming import no_attribute as _no_attribute
from .core.primitive import Aval as ShapeDtype
from .core.tensor import Tensor
from .core.tensor import moved_by as _moved_by
from .transforms.batching import vmap
from .transforms.forward import jvp
from .transforms.imperative import enable_grad, no_grad
from .transforms.reverse import grad, linearize, value_and_grad, vjp

if TYPE_CHECKING:
    from . import (
        adversarial,
        audio,
        cache,
        data,
        debug,
        decisions,
        distributed,
        distributions,
        estimators,
        fft,
        generation,
        graphs,
        linalg,
        metrics,
        models,
        nn,
        ode,
        optim,
        random,
        recipes,
        report,
        runs,
        series,
        shape,
        sparse,
        special,
        storage,
        text,
        train,
        viz,
        wengert,
    )
    from .engines.choosing import get_backend, set_backend, using_backend
    from .engines.devices import devices
    from .engines.native.keeping import get_kept_programs, set_kept_programs
    from .engines.native.threads import get_threads, set_threads
    from .hosting import pure_callback
    from .inspect.checking import check_grads
    from .inspect.counting import count, saved
    from .inspect.differences import is_subgradient, numerical_grad, numerical_jvp, subdifferential
    from .inspect.explain import explain
    from .inspect.transfers import collectives
    from .nn.adaptation.quantization import quantize
    from .nn.module.freezing import freeze
    from .optim.loss_scaling import GradScaler
    from .scale.exporting import export_stablehlo
    from .scale.mesh import mesh
    from .scale.sharding import shard
    from .scale.shardings import shardings
    from .special import digamma, erfcinv, i0, lgamma, polygamma
    from .storage.safetensors import load, save
    from .transforms.autocast import autocast
    from .transforms.checkpointing import checkpoint, checkpoint_scan, checkpoint_sequential
    from .transforms.control.associative import associative_scan
    from .transforms.control.branches import cond, switch
    from .transforms.control.loops import fori_loop, map, scan, while_loop
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
    from .transforms.jit.jit import eval_shape, jit, make_graph

# The same names for those who run the program: where each one is found when it is first used.
_MODULES = (
    "adversarial",
    "audio",
    "cache",
    "data",
    "debug",
    "decisions",
    "distributed",
    "distributions",
    "estimators",
    "fft",
    "generation",
    "graphs",
    "linalg",
    "metrics",
    "models",
    "nn",
    "ode",
    "optim",
    "random",
    "recipes",
    "report",
    "runs",
    "series",
    "shape",
    "special",
    "sparse",
    "storage",
    "text",
    "train",
    "viz",
    "wengert",
)
_FUNCTIONS = {
    "engines.devices": ("devices",),
    "engines.choosing": ("get_backend", "set_backend", "using_backend"),
    "inspect.checking": ("check_grads",),
    "inspect.explain": ("explain",),
    "inspect.transfers": ("collectives",),
    "scale.exporting": ("export_stablehlo",),
    "scale.mesh": ("mesh",),
    "scale.sharding": ("shard",),
    "scale.shardings": ("shardings",),
    "engines.native.keeping": ("get_kept_programs", "set_kept_programs"),
    "engines.native.threads": ("get_threads", "set_threads"),
    "hosting": ("pure_callback",),
    "inspect.differences": ("is_subgradient", "numerical_grad", "numerical_jvp", "subdifferential"),
    "inspect.counting": ("count", "saved"),
    "nn.adaptation.quantization": ("quantize",),
    "special": ("digamma", "erfcinv", "i0", "lgamma", "polygamma"),
    "optim.loss_scaling": ("GradScaler",),
    "storage.safetensors": ("load", "save"),
    "nn.module.freezing": ("freeze",),
    "transforms.autocast": ("autocast",),
    "transforms.control.associative": ("associative_scan",),
    "transforms.control.branches": ("cond", "switch"),
    "transforms.checkpointing": ("checkpoint", "checkpoint_scan", "checkpoint_sequential"),
    "transforms.custom": ("custom_jvp", "custom_vjp"),
    "transforms.derivatives": (
        "derivative",
        "directional_derivative",
        "hessian",
        "hvp",
        "is_linear",
        "jacfwd",
        "jacobian",
        "jacrev",
    ),
    "transforms.jit.jit": ("eval_shape", "jit", "make_graph"),
    "transforms.control.loops": ("fori_loop", "map", "scan", "while_loop"),
}
_HOME = {name: module for module, names in _FUNCTIONS.items() for name in names}


# large operations that come again: the engines load with the first
_made_by(lambda *call: importlib.import_module(".engines.single", __name__).kernel(*call))

_moved_by(lambda *call: importlib.import_module(".engines.devices", __name__).moved(*call))


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    raise _no_attribute(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES, *_HOME])


tracebacks.install()
# NumPy's floating-point warnings point into our code and say nothing about the user's; `wl.debug.nans` does.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"wonderland\.")
