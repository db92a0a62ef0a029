"""A module as a pure function of its parameters. Book, section 6.4.2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ... import arrays
from ...arrays import stop_gradient
from ...core import interpreter
from ...core.cell import Cell, rest
from ...core.context import current, enter, leave, restoring
from ...core.errors import ModuleError, ShapeError
from ...core.tensor import Tensor, Tracer
from ...core.trees import is_stateful
from ...core.typing import ArrayLike
from .hooks import Output, P
from .members import cells

__all__ = ["functional_call"]


@restoring
def functional_call(
    module: Callable[P, Output], params: Mapping[str, ArrayLike], /, *args: P.args, **kwargs: P.kwargs
) -> Output:
    r"""\(f(x; w)\) with the given values \(w\) in place of the module's own, and the module left as it was.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear(2, 1, bias=False)
    >>> params = {"weight": wl.tensor([[3.0], [4.0]])}
    >>> wl.nn.functional_call(model, params, wl.ones(2))
    tensor([7.])
    >>> wl.grad(lambda p, x: wl.nn.functional_call(model, p, x).sum())(params, wl.ones(2))
    {'weight': tensor([[1.],
            [1.]])}

    `params` maps paths of parameters and buffers to tensors of the same shapes, as
    `dict(model.named_parameters())` does; those that are not named keep their values. State that the call
    would change (buffers, random streams) is put back afterwards, also after an exception. With stacked
    values under `wl.vmap` it runs an ensemble at once.
    """
    chosen = _choose(module, params)
    trace = current().trace
    staged = trace is not None and trace.staged
    # reading makes a cell known to a trace that builds a graph, which expects its own tracer in it later
    for _, cell in cells(module):
        if staged:
            interpreter.read(cell)
    before = [(cell, cell._outside, cell.inside) for _, cell in cells(module)]
    rest.now = None  # what the cells hold is held here, too
    outer = enter(trace)  # other threads and tasks do not see the guests
    try:
        for cell, value in chosen:
            # the trace must not take a constant for the cell's own value, so it gets a traced one
            cell.hold(stop_gradient(value) if staged and not isinstance(value, Tracer) else value)
        return module(*args, **kwargs)
    finally:
        for cell, outside, inside in before:
            cell.restore(inside)
            if trace is None:
                cell.put(outside)  # the call may have written to it
        leave(outer)


def _choose(module: Any, values: Mapping[str, ArrayLike]) -> list[tuple[Cell, Tensor]]:
    if not is_stateful(module):
        raise ModuleError(
            f"functional_call: a {type(module).__name__} is not a module.",
            "functional_call(module, params, x)",
        )
    module._cells("functional_call")
    paths = dict(cells(module, again=True))
    chosen: dict[int, tuple[str, Cell, Tensor]] = {}
    for path, given in values.items():
        cell = paths.get(path)
        if cell is None:
            raise ModuleError(
                f"functional_call: this {type(module).__name__} has no parameter or buffer {path!r}.",
                f"paths such as {', '.join(map(repr, list(paths)[:4]))}" if paths else "an empty dict: it has none",
            )
        if not arrays.is_operand(given):
            raise ModuleError(
                f"functional_call: the value for {path!r} is a {type(given).__name__}, not a tensor.",
                "tensors or arrays of the shapes of the parameters",
            )
        if isinstance(given, Cell):
            value = interpreter.read(given)
        else:
            value = arrays.asarray(given, dtype=None if hasattr(given, "dtype") else cell.dtype)
        if value.shape != cell.shape:
            raise ShapeError(
                f"functional_call: the value for {path!r} has shape {value.shape}, expected {cell.shape}.",
                "wl.vmap over stacked values" if value.shape[1:] == cell.shape else "a value of the same shape",
            )
        if id(cell) in chosen and values[chosen[id(cell)][0]] is not given:
            raise ModuleError(
                f"functional_call: {chosen[id(cell)][0]!r} and {path!r} are one parameter with two values.",
                "one of the two paths",
            )
        chosen[id(cell)] = (path, cell, value)
    return [(cell, value) for _, cell, value in chosen.values()]
