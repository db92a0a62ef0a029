"""What is done with a random function: its value, derivatives, batches, and state that it updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import wonderland as wl


def total(ys: Any) -> Any:
    """A number made of all results that have derivatives."""
    found = [
        wl.real(y) + wl.imag(y) if y.dtype.kind == "c" else y
        for y in ys
        if wl.isdtype(y.dtype, ("real floating", "complex floating"))
    ]
    if not found:
        raise wl.errors.GradientError("there is nothing to differentiate.")
    return sum((wl.sin(y) * wl.cos(wl.arange(y.size).reshape(y.shape).astype(y.dtype))).sum() for y in found)


def smooth(xs: Any) -> tuple[int, ...]:
    """The positions of the inputs that have derivatives."""
    found = tuple(i for i, x in enumerate(xs) if wl.isdtype(x.dtype, ("real floating", "complex floating")))
    if not found:
        raise wl.errors.GradientError("there is nothing to differentiate with respect to.")
    return found


def value(f: Callable[..., Any], *xs: Any) -> Any:
    return f(*xs)


def grad(f: Callable[..., Any], *xs: Any) -> Any:
    return wl.grad(lambda *xs: total(f(*xs)), smooth(xs))(*xs)


def value_and_grad(f: Callable[..., Any], *xs: Any) -> Any:
    return wl.value_and_grad(lambda *xs: total(f(*xs)), smooth(xs))(*xs)


def jvp(f: Callable[..., Any], *xs: Any) -> Any:
    where = smooth(xs)

    def g(*ys: Any) -> Any:
        every = list(xs)
        for i, y in zip(where, ys, strict=True):
            every[i] = y
        return f(*every)

    primals = tuple(xs[i] for i in where)
    return wl.jvp(g, primals, tuple(wl.cos(x) for x in primals))


def mapped(f: Callable[..., Any], *xs: Any) -> Any:
    return wl.vmap(f)(*[wl.stack([x, wl.flip(x), x]) for x in xs])


def mapped_grad(f: Callable[..., Any], *xs: Any) -> Any:
    return wl.vmap(lambda *xs: grad(f, *xs))(*[wl.stack([x, wl.flip(x)]) for x in xs])


def second(f: Callable[..., Any], *xs: Any) -> Any:
    return wl.grad(lambda *xs: total(wl.tree.leaves(grad(f, *xs))), smooth(xs))(*xs)


def adjoint(f: Callable[..., Any], *xs: Any) -> Any:
    """The same number twice: a tangent that goes forward, and one that meets the adjoint."""
    where = smooth(xs)

    def g(*ys: Any) -> Any:
        every = list(xs)
        for i, y in zip(where, ys, strict=True):
            every[i] = y
        return total(f(*every))

    primals = tuple(xs[i] for i in where)
    tangents = tuple(wl.cos(x) for x in primals)
    ahead = wl.jvp(g, primals, tangents)[1]
    found, back = wl.vjp(g, *primals)
    adjoints = back(wl.ones_like(found))
    return [ahead, sum(wl.real(wl.sum(a * t)).astype(ahead.dtype) for a, t in zip(adjoints, tangents, strict=True))]


def trained(f: Callable[..., Any], *xs: Any) -> Any:
    """State after some steps, each of which makes it of itself and of the results of f."""
    cells = [wl.nn.Buffer(wl.asarray(np.array(x))) for x in xs]

    @wl.jit
    def step() -> Any:
        made = f(*[cell + 0 if cell.dtype.kind != "b" else cell for cell in cells])
        for i, cell in enumerate(cells):
            new = made[i % len(made)].reshape(-1)
            if cell.size and new.size:
                new = wl.tile(new, -(-cell.size // new.size))[: cell.size].reshape(cell.shape)
                other = wl.flip(cell) if i % 2 else cell
                cell.assign(wl.where(wl.isfinite(new) & (wl.abs(new) < 100), new.astype(cell.dtype), other))
        return made

    results = [step() for _ in range(3)]
    return [results, [cell.value for cell in cells]]


KINDS: dict[str, Callable[..., Any]] = {
    "value": value,
    "grad": grad,
    "value and grad": value_and_grad,
    "jvp": jvp,
    "vmap": mapped,
    "vmap of grad": mapped_grad,
    "grad of grad": second,
    "adjoint": adjoint,
    "state": trained,
}
STATEFUL = (trained,)
NEEDS: dict[Callable[..., Any], tuple[Callable[..., Any], ...]] = {
    grad: (total, smooth),
    value_and_grad: (total, smooth),
    jvp: (smooth,),
    mapped_grad: (total, smooth, grad),
    second: (total, smooth, grad),
    adjoint: (total, smooth),
}
