"""Random programs: all transformations of a composition agree with each other and with finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl

# smooth, or with kinks that random numbers do not hit; each keeps or broadcasts the shape
STEPS: dict[str, Callable[[Any], Any]] = {
    "sin": wl.sin,
    "square": lambda x: x**2,
    "softmax": lambda x: wl.softmax(x, axis=-1),
    "logsumexp": lambda x: wl.logsumexp(x, axis=-1, keepdims=True) + 0 * x,
    "cumsum": lambda x: wl.cumsum(x, axis=-1),
    "cumprod": lambda x: wl.cumulative_prod(wl.tanh(x), axis=-1),
    "prod": lambda x: wl.prod(x, axis=-1, keepdims=True) + x,
    "sort": lambda x: wl.sort(x, axis=-1),
    "flip": wl.flip,
    "roll": lambda x: wl.roll(x, 1, axis=-1),
    "relu": wl.relu,
    "where": lambda x: wl.where(x > 0.1, x, wl.sin(x)),
    "concat": lambda x: wl.concat([x, x * 2], axis=-1)[..., ::2][..., : x.shape[-1]],
    "set": lambda x: x.at[..., 0].set(3.0),
    "add at": lambda x: x.at[..., -1].add(x[..., 0]),
    "gather": lambda x: x[..., wl.tensor([0] * x.shape[-1])],
    "max": lambda x: wl.max(x, axis=-1, keepdims=True) * x,
    "einsum": lambda x: wl.einsum("...i,...j->...i", x, x),
    "norm": lambda x: wl.norm(x, axis=-1, keepdims=True) + x,
    "logaddexp": lambda x: wl.logaddexp(x, wl.sin(x)),
    "erf": wl.erf,
    "fft": lambda x: wl.real(wl.fft.ifft(wl.fft.fft(x.astype(wl.complex128)) * wl.complex(x, x))),
    "vmap": lambda x: wl.vmap(lambda row: row / (1 + row**2))(x),
    "jvp": lambda x: wl.jvp(wl.sin, (x,), (x,))[1],
    "grad": lambda x: wl.grad(lambda y: (y**3).sum())(x),
    "jit": lambda x: wl.jit(lambda y: wl.cos(y) * y)(x),
    "checkpoint": lambda x: wl.checkpoint(lambda y: wl.cos(y) * y)(x),
    "scan": lambda x: wl.scan(lambda c, row: (wl.tanh(c + row), c * row), wl.zeros_like(x[0]), x)[1],
    "cond": lambda x: wl.cond(x.sum() > 0, wl.sin, wl.cos, x),
}


def program(names: list[str]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for name in names:
            x = wl.tanh(STEPS[name](x)) + 0.5 * x
        return x

    return f


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


@settings(max_examples=40)
@given(
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    shape=st.sampled_from([(3,), (2, 3), (2, 1, 2)]),
    seed=st.integers(0, 1000),
)
def test_all_transformations_agree(names: list[str], shape: tuple[int, ...], seed: int) -> None:
    f = program(names)
    rng = np.random.default_rng(seed)
    x, v = (wl.asarray(rng.normal(size=shape)) for _ in range(2))
    batch = wl.asarray(rng.normal(size=(3, *shape)))
    total = lambda x: f(x).sum()
    gradient = wl.grad(total)
    wl.check_grads(f, (x,), order=2, rtol=1e-4, atol=1e-5)
    close(wl.vmap(f)(batch), np.stack([f(row).numpy() for row in batch]))
    close(wl.vmap(gradient)(batch), np.stack([gradient(row).numpy() for row in batch]))
    close(wl.jit(gradient)(x), gradient(x))
    recorded = wl.asarray(x.numpy().copy()).requires_grad_()
    f(recorded).sum().backward()
    close(recorded.grad, gradient(x))
    forward, reverse = (wl.jacobian(f, mode=mode)(x) for mode in ("forward", "reverse"))
    close(forward, reverse)
    close(wl.hvp(total, x, v), wl.jit(lambda x, v: wl.grad(lambda x: (gradient(x) * v).sum())(x))(x, v))
