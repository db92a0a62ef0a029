"""Calls back into Python from a program: `wl.debug.callback` looks at values, `wl.pure_callback` computes some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import asarray, stop_gradient
from .core import trees
from .core.arguments import as_function
from .core.cell import Cell
from .core.errors import InputError, TreeError
from .core.interpreter import read
from .core.primitive import Aval
from .core.tensor import Tensor, wrap
from .core.typing import Array
from .primitives.host import Hosted, host_call, observe

__all__ = ["callback", "pure_callback"]


def callback(f: Callable[..., object], *args: object, **kwargs: object) -> None:
    """Call `f(*args, **kwargs)` with the numbers of tensors whenever they are computed, for what it does.

    >>> import wonderland as wl
    >>> seen = []
    >>> @wl.jit
    ... def mean(x):
    ...     wl.debug.callback(seen.append, x.sum())
    ...     return x.mean()
    >>> _ = mean(wl.ones(3)), mean(wl.zeros(3))
    >>> seen
    [tensor(3.), tensor(0.)]

    Inside `jit`, loops and branches too, where Python's own code runs while tracing only. Under `vmap` f is called for
    every example, under `grad` with the values alone; a checkpoint calls it again when it computes again. Calls stay in
    the order of the program. What f returns is not used; what it raises ends the program.
    """
    called, tensors = _prepared("callback", f, args, kwargs)
    observe(*[stop_gradient(t) for t in tensors], function=Hosted(lambda *data: _nothing(called(*data)), _name(f)))


def pure_callback(f: Callable[..., object], result: object, *args: object, **kwargs: object) -> Any:
    """What `f(*args, **kwargs)` returns, computed by Python in the middle of a program.

    >>> import numpy as np, wonderland as wl
    >>> median = wl.jit(lambda x: wl.pure_callback(np.median, wl.ShapeDtype((), wl.float32), x) + 1)
    >>> median(wl.tensor([3.0, 1.0, 2.0]))
    tensor(3.)

    `result` says what it returns: a tree of `wl.ShapeDtype(shape, dtype)` or of tensors like the results. f gets
    tensors and must be pure: it may be called more often than written, less often, or in another order. It has no
    derivative (`wl.custom_vjp` around it gives it one, `wl.stop_gradient` says that none is wanted), and `vmap` calls
    it once for every example.
    """
    wanted, structure = trees.flatten(result)
    if not all(isinstance(leaf, (Aval, Tensor)) for leaf in wanted):
        raise InputError(f"pure_callback: result={result!r}.", "wl.ShapeDtype(shape, dtype), or a tree of them")
    avals = tuple(Aval(tuple(leaf.shape), np.dtype(leaf.dtype)) for leaf in wanted)
    called, tensors = _prepared("pure_callback", f, args, kwargs)

    def flat(*data: Array) -> list[Array]:
        leaves, found = trees.flatten(called(*data))
        if found != structure:
            raise TreeError(f"pure_callback: {_name(f)} gave {found} instead of {structure}.", "results as was said")
        made = [np.asarray(leaf) for leaf in leaves]
        # Python's numbers have no type of their own
        return [m.astype(a.dtype) if np.isscalar(x) else m for m, a, x in zip(made, avals, leaves, strict=True)]

    return trees.unflatten(structure, host_call(*tensors, function=Hosted(flat, _name(f)), avals=avals))


def _prepared(
    name: str, f: Callable[..., object], args: object, kwargs: object
) -> tuple[Callable[..., object], list[Tensor]]:
    """The function of the numbers of the tensors among the arguments, and these tensors."""
    as_function(name, f)
    leaves, structure = trees.flatten((args, kwargs), open_objects=False)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (Tensor, np.ndarray))]
    tensors = [read(leaf) if isinstance(leaf, Cell) else asarray(leaf) for leaf in (leaves[i] for i in places)]
    # those that are traced must not outlive the tracing
    kept = [None if i in set(places) else leaf for i, leaf in enumerate(leaves)]

    def called(*data: Array) -> object:
        filled = list(kept)
        for place, numbers in zip(places, data, strict=True):
            filled[place] = wrap(numbers)
        again, named = trees.unflatten(structure, filled)
        return f(*again, **named)

    return called, tensors


def _nothing(made: object) -> None:
    """What a callback returns is not used."""


def _name(f: object) -> str:
    return getattr(f, "__name__", type(f).__name__)
