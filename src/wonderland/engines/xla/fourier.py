"""Discrete Fourier transforms are XLA's own."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ...primitives.fourier import Norm
from .widening import wide


def _fft(x: jax.Array, axes: tuple[int, ...], inverse: bool, norm: Norm) -> jax.Array:
    transform = jnp.fft.ifft if inverse else jnp.fft.fft
    for axis in axes:
        x = transform(x, axis=axis, norm=norm)
    return x


PLAIN: dict[str, Callable[..., jax.Array]] = {
    "fft": _fft,
    "rfft": lambda x, axis, norm: jnp.fft.rfft(wide(x), axis=axis, norm=norm),
    "irfft": lambda x, n, axis, norm: jnp.fft.irfft(x, n=n, axis=axis, norm=norm),
}
