"""Attention by XLA: tiles of keys have the results of NumPy's evaluator, and memory that is linear in the lengths."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from tests.engines.large_cases import agree
from tests.primitives.cases import CASES
from wonderland.core.primitive import TABLE

jax = pytest.importorskip("jax")
attention = importlib.import_module("wonderland.engines.xla.attention")
exact = importlib.import_module("wonderland.engines.xla.program").exact

Array = np.ndarray[Any, Any]
NAMES = sorted(attention.PLAIN)
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def by_xla(calls: list[tuple[str, list[Array], dict[str, Any]]]) -> list[list[Array]]:
    """The results of calls of primitives, in one program."""

    def all_of_them(arrays: list[list[Any]]) -> list[Any]:
        return [attention.PLAIN[name](*a, **params) for a, (name, _, params) in zip(arrays, calls, strict=True)]

    with exact():
        found = jax.jit(all_of_them, compiler_options=QUICK)([args for _, args, _ in calls])
        return [[np.asarray(x) for x in results] for results in found]


def check(calls: list[tuple[str, list[Array], dict[str, Any]]]) -> None:
    for (name, args, params), results in zip(calls, by_xla(calls), strict=True):
        with np.errstate(invalid="ignore"):
            wanted = TABLE[name].impl(*args, **params)
        for x, y in zip(results, wanted, strict=True):
            assert np.array_equal(np.isnan(x), np.isnan(y))
            agree(np.nan_to_num(x), np.nan_to_num(y), f"{name} {params}", 4096)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_in_tiles_of_two_keys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks, windows, offsets, groups and slopes, with a tile that is left over where keys are odd in number."""
    monkeypatch.setattr(attention, "TILE", 2)
    check([(name, [np.asarray(a) for a in case.build(name)], dict(case.params)) for case in CASES[name]])


def test_long_sequences_with_numbers_out_of_sight_that_are_none() -> None:
    t, s, rng = 300, 2 * attention.TILE + 45, np.random.default_rng(0)
    q, k, v, g = (rng.normal(size=(2, n, 8)) for n in (t, s, s, t))
    h, params = rng.normal(size=(2, t)), {"causal": True, "scale": 0.3}
    k[:, 290:], v[0, 280], v[1, 400:] = np.nan, np.inf, -np.inf
    mask = rng.random((t, s)) < 0.7
    mask[:, 0], mask[5] = True, False  # nobody sees nothing, but for one
    with np.errstate(invalid="ignore"):
        lse = TABLE["attention"].impl(q, k, v, mask, **params)[1]
    tangents = [rng.normal(size=x.shape) for x in (q, k, v)]
    check(
        [
            ("attention", [q, k, v, mask], params),
            ("attention_tangent", [*tangents, q, k, v, lse, mask], params),
            ("attention_backward", [g, h, q, k, v, lse, mask], params),
        ]
    )


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_linear_in_the_length(name: str) -> None:
    """Twice the length takes twice the memory, with the plain form it would be four times."""

    def temporary(length: int) -> int:
        shape = lambda *sizes: jax.ShapeDtypeStruct((2, length, *sizes), np.float32)
        vectors, column = [shape(16)] * 3, shape()
        args = {
            "attention": vectors,
            "attention_tangent": [*vectors, *vectors, column],
            "attention_backward": [shape(16), column, *vectors, column],
        }[name]
        compiled = jax.jit(lambda *xs: attention.PLAIN[name](*xs, causal=True, scale=0.25), compiler_options=QUICK)
        return compiled.lower(*args).compile().memory_analysis().temp_size_in_bytes

    with exact():
        small, large = temporary(8 * attention.TILE), temporary(16 * attention.TILE)
    assert 0 < large < 2.2 * small
