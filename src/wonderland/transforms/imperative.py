"""The imperative style: tensors that remember how they were made, and `backward()`. Book, section 6.4.2 (Fig. 6.3).

An operation on a tensor that requires gradients leaves a `Record`. `backward()` visits the records in reverse order;
for each it linearises the primitive and transposes the result, with the same rules as `wl.grad`.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Callable
from typing import Any

from .. import arrays
from ..core.context import BACKWARD, at, current
from ..core.dtypes import is_complex, is_inexact
from ..core.errors import GradientError
from ..core.giving import given_to
from ..core.settings import as_recorded, setting
from ..core.tape import Record
from ..core.tensor import Tensor, alias, wrap
from ..core.typing import ArrayLike, Tangents
from .pulling import adjoints_of, at_once, of_records

Hook = Callable[[Tensor], Tensor | None]


def requires_grad_(tensor: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad and not is_inexact(tensor.dtype):
        raise GradientError(
            f"requires_grad_: a tensor of {tensor.dtype} has no gradient.", "x.astype(wl.float32).requires_grad_()"
        )
    if requires_grad and tensor._node is None:
        tensor._node = (Record(None, None, None, None), 0)
    elif not requires_grad:
        if tensor._node is not None and tensor._node[0].primitive is not None:
            raise GradientError("requires_grad_: only leaves can stop requiring gradients.", "x.detach()")
        tensor._node = None
    return tensor


def grad_of(tensor: Tensor) -> Tensor | None:
    node = tensor._node
    return None if node is None else node[0].grad.get(node[1])


def set_grad(tensor: Tensor, value: Tensor | None) -> None:
    node = tensor._node
    if node is None:
        if value is not None:
            raise GradientError("grad: this tensor does not require gradients.", "x.requires_grad_()")
        return
    if value is None:
        node[0].grad.pop(node[1], None)
    else:
        node[0].grad[node[1]] = value


def grad_fn(tensor: Tensor) -> Record | None:
    node = tensor._node
    return None if node is None or node[0].primitive is None else node[0]


def retain_grad(tensor: Tensor) -> None:
    if tensor._node is None:
        raise GradientError("retain_grad: this tensor was not recorded.", "x.requires_grad_() on one of its inputs")
    tensor._node[0].retained.add(tensor._node[1])


def register_hook(tensor: Tensor, hook: Hook) -> Callable[[], None]:
    """Returns a function that removes the hook."""
    if tensor._node is None:
        raise GradientError("register_hook: this tensor was not recorded.", "x.requires_grad_()")
    hooks = tensor._node[0].hooks.setdefault(tensor._node[1], [])
    hooks.append(hook)
    return lambda: hooks.remove(hook)


def backward(tensor: Tensor, gradient: ArrayLike | None, *, retain_graph: bool, create_graph: bool) -> None:
    node = tensor._node
    if node is None:
        raise GradientError(
            "backward: this tensor was not made from tensors that require gradients.",
            "x.requires_grad_() before the computation; inside wl.grad the transformation takes the gradient",
        )
    if gradient is None:
        if tensor.shape != ():
            raise GradientError(
                f"backward: a tensor of shape {tensor.shape} needs a gradient to start from.",
                "loss.sum().backward(), or y.backward(wl.ones_like(y))",
            )
        gradient = arrays.ones_like(tensor)
    gradient = gradient if isinstance(gradient, Tensor) else arrays.asarray(gradient, dtype=tensor.dtype)
    if gradient.shape != tensor.shape or gradient.dtype != tensor.dtype:
        raise GradientError(
            f"backward: a gradient of {gradient.dtype}{list(gradient.shape)} for a value of "
            f"{tensor.dtype}{list(tensor.shape)}.",
            "a gradient of the same shape and dtype as the value",
        )
    free = not (retain_graph or create_graph)
    with contextlib.nullcontext() if create_graph else no_grad(), as_recorded():
        seed = arrays.conj(gradient)
        if create_graph or not at_once() or not of_records(node, seed, free):
            _walk(node, seed, free)


def _walk(start: tuple[Record, int], seed: Tensor, free: bool) -> None:
    adjoints: dict[int, dict[int, Tensor]] = {}
    records: dict[int, Record] = {}
    waiting: list[int] = []

    def receive(node: tuple[Record, int], ct: Tensor) -> None:
        entry, index = node
        if entry.order not in adjoints:
            adjoints[entry.order] = {}
            records[entry.order] = entry
            heapq.heappush(waiting, -entry.order)
        cts = adjoints[entry.order]
        cts[index] = ct if index not in cts else cts[index] + ct

    receive(start, seed)
    while waiting:
        order = -heapq.heappop(waiting)
        entry, cts = records.pop(order), adjoints.pop(order)
        for index, ct in cts.items():
            for hook in entry.hooks.get(index, ()):
                changed = hook(alias(_conj(ct)))
                if changed is not None:
                    cts[index] = ct = _conj(changed)
            if entry.primitive is None or index in entry.retained:
                gradient = alias(_conj(ct))  # one adjoint may be the gradient of several leaves
                entry.grad[index] = entry.grad[index] + gradient if index in entry.grad else gradient
        if entry.primitive is None:
            continue
        if entry.args is None:
            raise GradientError(
                f"backward: the recording of {entry.name} was released by an earlier backward().",
                "backward(retain_graph=True) the first time, or compute the value again",
            )
        with _where_recorded(entry):
            found = _arg_adjoints(entry, cts)
        for arg, adjoint in zip(entry.args, found, strict=True):
            if adjoint is not None:
                receive(arg._node, adjoint)
        if free:
            entry.args = entry.outs = None


def _where_recorded(entry: Record) -> contextlib.AbstractContextManager[object]:
    if current().plain:
        return contextlib.nullcontext()
    source, module, _ = entry.place or (None, None, None)
    return at(source, module, f"{BACKWARD}, derivative of {entry.name}")


def _conj(ct: Tensor) -> Tensor:
    return arrays.conj(ct) if is_complex(ct.dtype) else ct


def _arg_adjoints(entry: Record, cts: dict[int, Tensor]) -> Tangents:
    """Linearise one primitive and transpose it. With `create_graph` the residuals are recorded in their turn."""
    args = entry.args
    outs = []
    for i, data in enumerate(entry.outs):
        out = wrap(data)
        if current().settings.grad_enabled and is_inexact(out.dtype):
            out._node = (entry, i)
        outs.append(out)
    primals = list(args) if current().settings.grad_enabled else [wrap(arg._data) for arg in args]
    varied = [arg._node is not None and is_inexact(arg.dtype) for arg in args]
    return adjoints_of(entry.primitive, primals, varied, outs, entry.params, cts)


def no_grad() -> setting:
    """Do not record operations for `backward()` inside; also usable as a decorator.

    >>> import wonderland as wl
    >>> x = wl.ones(2).requires_grad_()
    >>> with wl.no_grad():
    ...     y = 2 * x
    >>> y.requires_grad
    False
    """
    return setting("grad_enabled", False)


def enable_grad() -> setting:
    """Record operations again, inside `no_grad`; also usable as a decorator.

    >>> import wonderland as wl
    >>> x = wl.ones(2).requires_grad_()
    >>> with wl.no_grad(), wl.enable_grad():
    ...     y = 2 * x
    >>> y.requires_grad
    True
    """
    return setting("grad_enabled", True)


@given_to(Tensor)
class Recorded:
    """What tensors can do in the imperative style."""

    @property
    def requires_grad(self: Any) -> bool:
        """Whether operations on this tensor are recorded for `backward()`."""
        return self._node is not None

    def requires_grad_(self: Any, requires_grad: bool = True) -> Tensor:
        """Ask for gradients with respect to this tensor; returns the tensor itself."""
        return requires_grad_(self, requires_grad)

    @property
    def grad(self: Any) -> Tensor | None:
        """The gradient accumulated by `backward()`; None before."""
        return grad_of(self)

    @grad.setter
    def grad(self: Any, value: Tensor | None) -> None:
        set_grad(self, value)

    @property
    def grad_fn(self: Any) -> Record | None:
        """The operation that made this tensor, if it was recorded; None for leaves."""
        return grad_fn(self)

    @property
    def is_leaf(self: Any) -> bool:
        """Whether no recorded operation made this tensor."""
        return grad_fn(self) is None

    def backward(
        self: Any, gradient: ArrayLike | None = None, *, retain_graph: bool = False, create_graph: bool = False
    ) -> None:
        """Walk the recorded operations backwards and add the gradients to the leaves' `.grad`."""
        backward(self, gradient, retain_graph=retain_graph, create_graph=create_graph)

    def retain_grad(self: Any) -> None:
        """Keep the gradient of this intermediate value in `.grad`, too."""
        retain_grad(self)

    def register_hook(self: Any, hook: Hook) -> Callable[[], None]:
        """Call `hook(gradient)` when the gradient of this tensor is known; its result, if any, replaces it."""
        return register_hook(self, hook)

    def zero_grad(self: Any) -> None:
        """Forget the accumulated gradient."""
        set_grad(self, None)
