"""Half precision is computed in float32, and rounded once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

import jax
import jax.numpy as jnp

from ...core.dtypes import is_half

P = ParamSpec("P")
Rule = Callable[..., jax.Array]
Rules = Callable[..., list[jax.Array]]


def wide(x: jax.Array) -> jax.Array:
    """Numbers of half precision as float32; others as they are."""
    return x.astype(jnp.float32) if is_half(x.dtype) else x


def in_float32(rule: Rule) -> Rule:
    """A rule that computes wide, for arguments of half precision."""

    @functools.wraps(rule)
    def widened(*args: jax.Array, **params: object) -> jax.Array:
        dtype = args[0].dtype
        return rule(*map(wide, args), **params).astype(dtype) if is_half(dtype) else rule(*args, **params)

    return widened
