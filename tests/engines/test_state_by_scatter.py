"""State of which a compiled function changes some places: a cache to which a step of decoding adds a token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.test_program import numbers
from tests.engines.test_state import places, same, values

CAPACITY = 40


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    with wl.using_backend("native"):
        yield


class Cache(wl.nn.Module):
    """Keys of three layers, and how many there are in each row."""

    def __init__(self, batch: int = 2, dtype: Any = np.float32) -> None:
        start = [numbers(batch, CAPACITY, 3, 8, seed=i).astype(dtype) for i in range(3)]
        self.keys = [wl.nn.Buffer(wl.asarray(s)) for s in start]
        self.lengths = wl.nn.Buffer(wl.arange(batch) + 5)


def _step(cache: Cache, x: Any) -> Any:
    """Each layer reads what it has just written, and the next one depends on that."""
    rows = wl.arange(x.shape[0])
    for keys in cache.keys:
        keys.assign(keys.at[rows, cache.lengths].set(x.astype(keys.dtype)))
        x = x + keys.value.astype(x.dtype).sum(axis=1) / CAPACITY
    cache.lengths.assign(cache.lengths + 1)
    return x


def _extend(cache: Cache, x: Any, counts: Any) -> Any:
    """Some tokens, of which the first few in each row are real."""
    t = x.shape[1]
    real = wl.arange(t) < counts[:, None]
    where = wl.where(real, cache.lengths[:, None] + wl.arange(t), CAPACITY)
    for keys in cache.keys:
        keys.assign(keys.at[wl.arange(x.shape[0])[:, None], where].set(x.astype(keys.dtype), mode="drop"))
        x = x + keys.value.astype(x.dtype).sum(axis=(0, 1)) / CAPACITY
    cache.lengths.assign(cache.lengths + counts)
    return x


def _agrees(f: Callable[..., Any], cache: Cache, other: Cache, *args: Any) -> None:
    """One call compiled, and one by NumPy of another cache."""
    with wl.using_backend("numpy"):
        want = f(other, *args)
    np.testing.assert_allclose(wl.jit(f)(cache, *args), want, rtol=1e-5, atol=1e-5)
    for name, value in values(other).items():
        np.testing.assert_allclose(np.float64(values(cache)[name]), np.float64(value), rtol=1e-2, atol=1e-5)


DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, wl.bfloat16])


@DTYPES
def test_a_step_writes_into_the_cache(dtype: Any) -> None:
    cache, other = Cache(dtype=dtype), Cache(dtype=dtype)
    before = None
    for seed in range(4):
        _agrees(_step, cache, other, wl.asarray(numbers(2, 3, 8, seed=seed)))
        now = places(cache)
        now.pop("lengths")  # a new array or not, as it likes
        assert before is None or now == before
        before = now


@DTYPES
def test_several_tokens_of_which_some_are_padding(dtype: Any) -> None:
    cache, other = Cache(dtype=dtype), Cache(dtype=dtype)
    before = None
    for counts in ([3, 1], [0, 4], [2, 0]):
        _agrees(_extend, cache, other, wl.asarray(numbers(2, 4, 3, 8)), wl.tensor(counts))
        now = places(cache)
        now.pop("lengths")
        assert before is None or now == before
        before = now


def test_the_cache_of_somebody_else_is_copied() -> None:
    cache, other, x = Cache(), Cache(), wl.ones((2, 3, 8))
    held = cache.keys[1].value
    seen = held.numpy().copy()
    _agrees(_step, cache, other, x)
    np.testing.assert_array_equal(held.numpy(), seen)
    now = places(cache)
    del held
    _agrees(_step, cache, other, x)
    assert all(place == now[name] for name, place in places(cache).items() if name != "lengths")


def test_a_full_cache_is_told_before_anything_is_written() -> None:
    """The last layer's index alone is wrong, and the first layers have been changed by then."""
    cache = Cache()

    @wl.jit
    def step(cache: Cache, x: Any, last: Any) -> Any:
        for i, keys in enumerate(cache.keys):
            at = cache.lengths if i < 2 else last
            keys.assign(keys.at[wl.arange(2), at].set(x))
            x = x + keys.value.sum(axis=1)
        return x

    x, good = wl.ones((2, 3, 8)), wl.tensor([1, 2])
    step(cache, x, good)
    before, where = values(cache), places(cache)
    with pytest.raises(wl.errors.IndexOutOfRange, match=f"index {CAPACITY}"):
        step(cache, x, wl.tensor([3, CAPACITY]))
    assert same(values(cache), before)
    assert places(cache) == where
    step(cache, 2 * x, good)
    assert not same(values(cache), before)
    assert places(cache) == where


def test_checks_of_later_layers_come_first() -> None:
    """A table is read in every layer, at places that are computed from what is known before the first."""
    cache, table = Cache(), wl.asarray(numbers(50, 3, 8))

    @wl.jit
    def step(cache: Cache, x: Any, places: Any) -> Any:
        for keys in cache.keys:
            x = wl.tanh(x) * table[(places + 3) // 2 * 2]
            keys.assign(keys.at[wl.arange(2), cache.lengths].set(x))
            x = x + keys.value.sum(axis=1)
        return x

    step(cache, wl.ones((2, 3, 8)), wl.tensor([7, 9]))
    before, where = values(cache), places(cache)
    step(cache, wl.ones((2, 3, 8)) * 2, wl.tensor([7, 9]))
    assert places(cache) == where
    assert not same(values(cache), before)
    before = values(cache)
    with pytest.raises(wl.errors.IndexOutOfRange, match="gather"):
        step(cache, wl.ones((2, 3, 8)), wl.tensor([7, 59]))
    assert same(values(cache), before)


@pytest.mark.parametrize("late", ["index", "fallback"])
def test_what_is_known_too_late_keeps_state_out_of_place(late: str) -> None:
    """An index that depends on what was written, or a step that NumPy computes, may fail after the write."""
    cache, table = Cache(), wl.asarray(numbers(50))

    @wl.jit
    def step(cache: Cache, x: Any, limit: Any) -> Any:
        keys = cache.keys[0]
        keys.assign(keys.at[wl.arange(2), cache.lengths].set(x))
        total = keys.value[0, 5, 0, 0] * limit
        if late == "index":
            return table[total.astype(wl.int64)]
        return wl.linalg.inv(wl.stack([wl.stack([total, 0 * total]), wl.stack([0 * total, total])]))

    x = wl.ones((2, 3, 8))
    step(cache, x, 2.0)
    before = values(cache)
    with pytest.raises((wl.errors.IndexOutOfRange, wl.errors.LinearAlgebraError)):
        step(cache, 2 * x, 100.0 if late == "index" else 0.0)
    assert same(values(cache), before)
    step(cache, 2 * x, 3.0)
    assert values(cache)["keys.0"][0, 5, 0, 0] == 2.0


@pytest.mark.parametrize(
    "change",
    [
        lambda k, i: k.at[i].set(k[i[::-1]]),
        lambda k, i: k.at[i].add(k[0]),
        lambda k, i: k.at[i].set(1.0).at[i + 1].multiply(2.0),
        lambda k, i: k.at[i].set(k.sum(axis=0)),
        lambda k, i: k.T.at[i].set(3.0).T,
        lambda k, i: k.reshape(-1).at[i].set(3.0).reshape(k.shape),
        lambda k, i: k[::-1].at[i].set(3.0),
        lambda k, i: k.at[i].set(0.5) + k,
        lambda k, i: wl.cond(k.sum() > 0, lambda k: k.at[i].set(1.0), lambda k: k.at[i].set(2.0), k),
        lambda k, i: wl.fori_loop(0, 3, lambda n, k: k.at[i + n].add(1.0), k),
        lambda k, i: k.at[wl.concatenate([i, i])].add(1.5),
    ],
)
def test_other_updates_of_state(change: Callable[[Any, Any], Any]) -> None:
    start = numbers(7, 7)
    cell, i = wl.nn.Buffer(wl.asarray(start)), wl.tensor([4, 1, 2])

    @wl.jit
    def step(cell: Any, i: Any) -> Any:
        new = change(cell, i)
        cell.assign(new)
        return new.sum()

    want = wl.asarray(start)
    for _ in range(3):
        found = step(cell, i)
        with wl.using_backend("numpy"):
            want = change(want, i)
        np.testing.assert_allclose(found, want.numpy().sum(), rtol=1e-4)
    np.testing.assert_allclose(cell.numpy(), want, rtol=1e-5, atol=1e-6)


def test_threads_do_not_change_the_cache() -> None:
    found, before = [], wl.get_threads()
    for threads in (1, 2):
        cache = Cache(batch=9)
        wl.set_threads(threads)
        for _ in range(3):
            wl.jit(_step)(cache, wl.asarray(numbers(9, 3, 8)))
        wl.set_threads(before)
        found.append(values(cache))
    assert same(*found)
