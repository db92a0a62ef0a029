"""Random programs: a list of instructions, each of which takes tensors from those made so far and makes another one.

An instruction is a name of `STEPS` and a number, from which all its choices (operands, axes, sizes) follow; so programs
can be shortened by leaving instructions out. Values stay of moderate size, and what is decided by comparing (masks,
indices, branches) is decided by the inputs, which are the same to the last bit for every engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wonderland as wl
from tests.transforms.test_random_programs import STEPS as SIMPLE

F = wl.nn.functional
Instruction = tuple[str, int]
Pick = np.random.Generator
LARGEST = 3000  # elements of a value


class Pool:
    """The tensors of a program under way."""

    def __init__(self, pick: Pick, made: list[Any], inputs: int) -> None:
        self.pick, self.made, self.inputs = pick, made, inputs

    def one(self, rank: int = 0) -> Any:
        """A tensor of at least this many axes, more often a late one."""
        n = len(self.made)
        x = self.made[min(n - 1, int(n * self.pick.random() ** 0.5))]
        while x.ndim < rank:
            x = x[None] if self.pick.random() < 0.5 else x[..., None]
        return x

    def partner(self, x: Any) -> Any:
        """A tensor that broadcasts against x, of its shape or less."""
        y = self.one()
        if y.size > x.size:
            y = y.reshape(-1)[: x.size]
        kept = x.shape[int(self.pick.integers(0, x.ndim + 1)) :]
        shape = tuple(n if self.pick.random() < 0.7 else 1 for n in kept)
        return self.stretched(y, math.prod(shape)).reshape(shape)

    def stretched(self, x: Any, size: int) -> Any:
        """The elements of x, again and again, until there are `size`."""
        flat = x.reshape(-1)
        return wl.concat([flat] * -(-size // x.size))[:size] if x.size < size else flat[:size]

    def weight(self, *shape: int) -> Any:
        """A matrix of numbers from the pool."""
        return self.stretched(self.one(), math.prod(shape)).reshape(shape)

    def decided(self, shape: Sequence[int]) -> Any:
        """Numbers that follow from an input without rounding, to be compared and counted."""
        x = self.made[int(self.pick.integers(0, self.inputs))]
        return self.stretched(wl.stop_gradient(x), math.prod(shape)).reshape(tuple(shape))

    def indices(self, shape: Sequence[int], size: int) -> Any:
        """Integers in [-size, size): from the data, or constants."""
        if self.pick.random() < 0.5:
            return wl.asarray(self.pick.integers(-size, size, tuple(shape)))
        return (self.decided(shape) * 997.0).astype(wl.int64) % size

    def axis(self, x: Any) -> int:
        return int(self.pick.integers(-x.ndim, x.ndim))

    def axes(self, x: Any) -> tuple[int, ...] | None:
        chosen = tuple(int(a) for a in range(x.ndim) if self.pick.random() < 0.5)
        return chosen or None

    def among(self, *choices: Any) -> Any:
        return choices[int(self.pick.integers(0, len(choices)))]


Step = Callable[[Pool], Any]


def _unary(p: Pool) -> Any:
    f = p.among(
        *[wl.sin, wl.tanh, wl.sigmoid, F.gelu, F.silu, wl.relu, wl.erf, wl.expm1, wl.softplus, wl.abs, wl.negative],
        *[lambda x: wl.exp(-x * x), lambda x: wl.log1p(x * x), lambda x: wl.sqrt(x * x + 1), wl.cos],
        *[lambda x: 1 / (2 + wl.sin(x)), lambda x: wl.where(x > 100, x, wl.sin(x))],
        *[lambda x: wl.clip(x, -0.5, 0.5), lambda x: wl.log(wl.abs(x) + 0.5), wl.square, wl.atan],
    )
    return f(p.one())


def _binary(p: Pool) -> Any:
    f = p.among(
        *[wl.add, wl.subtract, wl.multiply, wl.maximum, wl.minimum, wl.logaddexp],
        *[lambda x, y: x / (1 + y * y), lambda x, y: (wl.abs(x) + 0.5) ** y, lambda x, y: wl.hypot(x, y + 3)],
    )
    x = p.one()
    y = p.partner(x)
    return f(x, y) if p.pick.random() < 0.7 else f(y, x)


def _reduction(p: Pool) -> Any:
    x = p.one(1)
    axes, keep = p.axes(x), bool(p.pick.integers(2))
    name = p.among("sum", "mean", "max", "min", "prod", "var", "logsumexp")
    x = wl.tanh(x) + 1.1 if name == "prod" else x
    made = getattr(wl, name)(x, axis=axes, keepdims=keep)
    if name in ("sum", "prod"):
        made = wl.tanh(made / 4)
    return x - made if keep and p.pick.random() < 0.5 else made


def _logic(p: Pool) -> Any:
    x = p.one(1)
    mask = p.decided(x.shape) > p.among(-0.5, 0.0, 0.7)
    axes = p.axes(x)
    some = wl.any(mask, axis=axes, keepdims=True) if p.pick.random() < 0.5 else wl.all(mask, axis=axes, keepdims=True)
    return wl.where(wl.logical_xor(mask, some), x, p.partner(x))


def _reshape(p: Pool) -> Any:
    x, n, shape = p.one(), 0, []
    n = x.size
    while n > 1 and len(shape) < 3:
        factor = p.among(*[d for d in range(1, n + 1) if n % d == 0][:6])
        shape.append(int(factor))
        n //= factor
    return x.reshape(*shape, n)


def _transpose(p: Pool) -> Any:
    x = p.one(2)
    return wl.transpose(x, tuple(int(a) for a in p.pick.permutation(x.ndim)))


def _slice(p: Pool) -> Any:
    x = p.one(1)
    index: list[Any] = []
    for n in x.shape:
        start = int(p.pick.integers(0, n))
        step = p.among(1, 1, 2, 3, -1, -2)
        index.append(slice(start, None, step) if step > 0 else slice(n - 1 - start, None, step))
    return x[tuple(index)]


def _concat(p: Pool) -> Any:
    x = p.one(1)
    axis = p.axis(x)
    y = wl.broadcast_to(p.partner(x), x.shape)
    parts = p.among([x, y], [y, x, y], [x, x], [x])
    return wl.stack(parts, axis=axis) if p.pick.random() < 0.3 else wl.concat(parts, axis=axis)


def _pad(p: Pool) -> Any:
    x = p.one(1)
    return wl.pad(x, [(int(p.pick.integers(0, 3)), int(p.pick.integers(0, 3))) for _ in x.shape])


def _update(p: Pool) -> Any:
    x = p.one(1)
    n = x.shape[0]
    start = int(p.pick.integers(0, n))
    part = x.at[start :: p.among(1, 2)]
    value = p.among(0.5, p.partner(x[0]))
    return p.among(part.set, part.add, lambda v: part.multiply(wl.stop_gradient(v)))(value)


def _gather(p: Pool) -> Any:
    x = p.one(2)
    m = int(p.pick.integers(1, 6))
    kind = int(p.pick.integers(4))
    if kind == 0:
        return x[p.indices((m,), x.shape[0])]
    if kind == 1:
        return x[p.indices((m,), x.shape[0]), p.indices((2, m), x.shape[1])]
    if kind == 2:
        return wl.take_along_axis(x, p.indices((*x.shape[:-1], m), x.shape[-1]) % x.shape[-1], axis=-1)
    return x[..., p.indices((m,), x.shape[-1])]


def _scatter(p: Pool) -> Any:
    x = p.one(2)
    m = int(p.pick.integers(1, 6))
    if p.pick.random() < 0.3:
        return wl.segment_sum(x, p.indices((x.shape[0],), m) % m, num_segments=m)
    place = x.at[p.indices((m,), x.shape[0])]
    rows = wl.asarray(p.pick.normal(size=(m,) + (1,) * (x.ndim - 1)), dtype=x.dtype)
    value = wl.broadcast_to(p.partner(x[0]), (m, *x.shape[1:])) * rows
    return place.add(value) if p.pick.random() < 0.7 else place.multiply(wl.stop_gradient(value))


def _layer(p: Pool) -> Any:
    """A product with bias, activation and residual."""
    x = p.one(2)
    k, n = x.shape[-1], int(p.among(1, 3, 8, 17, 33))
    h = x @ p.weight(k, n) / math.sqrt(k)
    if p.pick.random() < 0.7:
        h = h + p.weight(n)
    h = p.among(wl.relu, wl.tanh, F.gelu, wl.sigmoid, lambda h: h)(h)
    if p.pick.random() < 0.5:
        h = h + 0.5 * wl.broadcast_to(p.partner(h), h.shape)
    if p.pick.random() < 0.4:
        h = x + h @ p.weight(n, k) / math.sqrt(n)
    return h


def _product(p: Pool) -> Any:
    x = p.one(2)
    kind = int(p.pick.integers(4))
    scale = 1 / math.sqrt(x.shape[-1])
    if kind == 0:
        return x @ x.mT * scale
    if kind == 1:
        return x.mT @ wl.broadcast_to(p.partner(x), x.shape) / math.sqrt(x.shape[-2])
    if kind == 2:
        return wl.einsum("...ij,kj->...ik", x, p.weight(4, x.shape[-1])) * scale
    return x @ p.weight(x.shape[-1]) * scale


def _normalization(p: Pool) -> Any:
    x = p.one(2)
    n = x.shape[-1]
    kind = int(p.pick.integers(6))
    if kind == 0:
        return F.layer_norm(x, (n,), 1 + 0.1 * p.weight(n), p.weight(n), eps=0.1)
    if kind == 1 and x.size > n:
        return F.batch_norm(x, None, None, 1 + 0.1 * p.weight(n), p.weight(n), training=True, eps=0.1)
    if kind == 2:
        return F.rms_norm(x, (n,), 1 + 0.1 * p.weight(n), eps=0.1)
    axis = p.axis(x)
    return wl.softmax(2 * x, axis=axis) if kind < 5 else wl.log_softmax(x, axis=axis) / 4


def _cross_entropy(p: Pool) -> Any:
    x = p.one(2)
    x = x.reshape(-1, x.shape[-1])
    target = p.indices((x.shape[0],), x.shape[1]) % x.shape[1]
    return F.cross_entropy(x, target, reduction=p.among("mean", "none"), label_smoothing=p.among(0.0, 0.1)) / 4


def _attention(p: Pool) -> Any:
    x = p.one(2)
    d = x.shape[-1]
    q = p.stretched(x, 2 * 5 * d).reshape(1, 5, 2, d)
    k = p.weight(1, 7, 2, d)
    mask = p.among(None, p.decided((5, 7)) > -0.5)
    return F.dot_product_attention(q, k, wl.sin(k), mask=mask, is_causal=mask is None and p.among(True, False))


def _convolution(p: Pool) -> Any:
    c, o = p.among(1, 2, 4), p.among(1, 3, 8)
    groups = p.among(1, 1, c)
    o *= groups
    x = p.stretched(p.one(), 2 * 6 * 5 * c).reshape(2, 6, 5, c)
    w = p.weight(*p.among((1, 1), (3, 3), (2, 3)), c // groups, o) / 3
    y = F.conv2d(x, w, p.weight(o), stride=p.among(1, 2), padding=p.among(0, 1), groups=groups)
    return p.among(lambda y: y, wl.relu, lambda y: F.avg_pool2d(y, 2), lambda y: F.max_pool2d(wl.sin(y), 2))(y)


def _cumulative(p: Pool) -> Any:
    x = p.one(1)
    axis = p.axis(x)
    return wl.tanh(wl.cumsum(x, axis=axis) / 2) if p.pick.random() < 0.5 else wl.cumulative_prod(wl.tanh(x), axis=axis)


def _sequence(p: Pool) -> tuple[Any, Any]:
    """A sequence of vectors, and a matrix for its state."""
    x = p.one(2)
    x = x.reshape(x.shape[0], -1)[:7, :17]
    n = x.shape[1]
    return x, p.weight(n, n) / math.sqrt(n)


def _scan(p: Pool) -> Any:
    x, w = _sequence(p)
    kind = int(p.pick.integers(4))
    reverse = bool(p.pick.integers(2))
    if kind == 0:
        last, made = wl.scan(lambda h, row: (wl.tanh(h @ w + row), h * row), wl.zeros_like(x[0]), x, reverse=reverse)
    elif kind == 1:  # several carries, which change places

        def cell(state: Any, row: Any) -> Any:
            h, c, n = state
            gate = wl.sigmoid(h @ w + row)
            c = gate * c + (1 - gate) * wl.tanh(row)
            return (wl.tanh(c), h * gate, n + 1), (c, gate)

        start = (x[0], wl.zeros_like(x[0]), wl.zeros((), dtype=wl.int32))
        (h, c, n), (made, gates) = wl.scan(cell, start, x, reverse=reverse)
        last = h + c * n.astype(x.dtype) + gates.sum(axis=0) / 7
    elif kind == 2:  # a loop in a loop

        def outer(h: Any, row: Any) -> Any:
            inner, steps = wl.scan(lambda s, v: (wl.sin(s + v * row[0]), s * v), h[0], row, reverse=not reverse)
            return wl.tanh(h * inner + row), steps

        last, made = wl.scan(outer, x[0] * 0.5, x, reverse=reverse)
    else:
        last, made = wl.scan(lambda h, i: (h * 0.5 + x[i], wl.sin(h)), x[0], wl.arange(x.shape[0]), reverse=reverse)
    return made + last


def _loop(p: Pool) -> Any:
    x, w = _sequence(p)
    limit = p.indices((), 4) % 4 + 1
    if p.pick.random() < 0.5:
        return wl.fori_loop(0, int(p.pick.integers(1, 4)), lambda i, y: wl.tanh(y @ w + i.astype(y.dtype) / 8), x)
    x, w = wl.stop_gradient(x), wl.stop_gradient(w)  # the number of steps is not known, so there is no reverse mode
    body = lambda s: (s[0] + 1, wl.tanh(s[1] @ w + x))
    return wl.while_loop(lambda s: s[0] < limit, body, (wl.zeros((), dtype=wl.int64), x))[1]


def _branch(p: Pool) -> Any:
    x = p.one(1)
    y = wl.broadcast_to(p.partner(x), x.shape)
    branches = [lambda x, y: wl.sin(x) * y, lambda x, y: x, lambda x, y: wl.flip(y) + x.sum() / x.size]
    if p.pick.random() < 0.5:
        return wl.cond(p.decided(()) > 0, branches[0], branches[2], x, y)
    return wl.switch(p.indices((), 3) % 3, branches, x, y)


def _dtype(p: Pool) -> Any:
    """To another dtype and back."""
    x = p.one()
    if p.pick.random() < 0.3:
        count = (p.decided(x.shape) * 10).astype(wl.int32) // 3 % 5
        return x * count.astype(x.dtype) / 4
    if x.dtype == wl.float64:  # what is rounded to less must be the same to the last bit
        return x * p.decided(x.shape).astype(p.among(wl.float32, wl.float16, wl.bfloat16)).astype(wl.float64)
    return wl.sin(x.astype(wl.float64)).astype(x.dtype)


def _random(p: Pool) -> Any:
    x = p.one()
    key = wl.random.key(int(p.pick.integers(100)))
    noise = wl.random.uniform(x.shape, key=key, dtype=x.dtype)
    return wl.where(noise < 0.8, x / 0.8, 0.0) + 0.1 * noise


def _mapped(p: Pool) -> Any:
    x = p.one(2)
    f = lambda row: row * wl.softmax(row).max() + wl.sin(row)
    columns = wl.vmap(f, in_axes=1, out_axes=1)
    return p.among(wl.vmap(f), columns, lambda x: wl.map(f, x), wl.checkpoint(f))(x)


def _simple(p: Pool) -> Any:
    names = [n for n in sorted(SIMPLE) if n not in ("fft", "sort", "cumsum", "cumprod", "cond")]
    return SIMPLE[p.among(*names)](wl.tanh(p.one(2)))


STEPS: dict[str, Step] = {
    "unary": _unary,
    "binary": _binary,
    "reduction": _reduction,
    "logic": _logic,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "concat": _concat,
    "pad": _pad,
    "update": _update,
    "gather": _gather,
    "scatter": _scatter,
    "layer": _layer,
    "product": _product,
    "normalization": _normalization,
    "cross entropy": _cross_entropy,
    "attention": _attention,
    "convolution": _convolution,
    "cumulative": _cumulative,
    "scan": _scan,
    "loop": _loop,
    "branch": _branch,
    "dtype": _dtype,
    "random": _random,
    "mapped": _mapped,
    "simple": _simple,
}


def program(instructions: Sequence[Instruction], results: int = 3) -> Callable[..., list[Any]]:
    """The last few values that the instructions make of some inputs."""

    def f(*inputs: Any) -> list[Any]:
        made = list(inputs)
        for name, number in instructions:
            value = STEPS[name](Pool(np.random.default_rng(number), made, len(inputs)))
            if value.size > LARGEST:
                value = value.reshape(-1)[:LARGEST]
            made.append(value.astype(inputs[0].dtype))
        return made[-results:]

    return f
