"""Copies that are not made: state of which loops and steps change some places lies where it lay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import same
from tests.engines.test_program import numbers
from tests.engines.test_state import places
from wonderland.inspect.listing import Line

ROWS, SIZE = 300, 16


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    with wl.using_backend("native"):
        yield


def _copies(f: Any, *args: Any) -> list[Line]:
    """The steps that copy all of the state and are run, as a program tells them."""
    return [
        line
        for line in wl.explain(f, *args).steps
        if line.kind == "copy" and line.times != 0 and line.bytes >= 2 * 4 * ROWS * SIZE
    ]


def _within(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line.blocks]


def _add(state: Any, at: Any, x: Any) -> tuple[Any, Any]:
    """A row more, and what is read of all."""
    state = state.at[at].set(x)
    return state, wl.tanh(wl.sum(state, axis=0))


def _scanned(state: Any, at: Any, x: Any) -> Any:
    def body(carry: Any, _: Any) -> Any:
        state, at, x = carry
        state, x = _add(state, at, x)
        return (state, at + 1, x), x[0]

    return wl.scan(body, (state, at, x), None, length=7)


def _while(state: Any, at: Any, x: Any) -> Any:
    def body(carry: Any) -> Any:
        state, at, x = carry
        state, x = _add(state, at, x)
        return state, at + 1, x

    return wl.while_loop(lambda carry: carry[1] < 11, body, (state, at, x))


def _nested(state: Any, at: Any, x: Any) -> Any:
    def body(carry: Any, _: Any) -> Any:
        (state, at, x), ys = _scanned(*carry)
        return (state.at[0].add(x), at, x), ys

    return wl.scan(body, (state, at, x), None, length=3)


def _arguments() -> tuple[Any, ...]:
    return wl.asarray(numbers(ROWS, SIZE)), wl.tensor(3), wl.asarray(numbers(SIZE, seed=1))


@pytest.mark.parametrize("f", [_scanned, _while, _nested])
def test_loops_that_change_a_row_agree_with_the_reference(f: Any) -> None:
    same(f, *[a.numpy() for a in _arguments()], rtol=1e-5, atol=1e-5, threads=True)


@pytest.mark.parametrize("f", [_scanned, _while])
def test_a_loop_changes_its_state_where_it_lies(f: Any) -> None:
    copies = _copies(wl.jit(f), *_arguments())
    assert not _within(copies)
    assert len(copies) == 1  # the argument, which belongs to the caller


def test_what_is_read_as_it_was_before_is_copied() -> None:
    """The old state is read behind the scatter, by something that needs what the scatter gave."""

    def f(state: Any, at: Any, x: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            old, at = carry
            new, y = _add(old, at, x)
            return (new, at + 1), wl.sum(old * y, axis=0)

        return wl.scan(body, (state, at), None, length=5)

    assert _within(_copies(wl.jit(f), *_arguments()))
    same(f, *[a.numpy() for a in _arguments()], rtol=1e-5, atol=1e-5)


def test_states_that_change_places_are_kept_apart() -> None:
    def f(state: Any, at: Any, x: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            one, other, at = carry
            return (other.at[at].set(x), one.at[at].add(2 * x), at + 1), one[at]

        return wl.scan(body, (state, 2 * state, at), None, length=5)

    same(f, *[a.numpy() for a in _arguments()], rtol=1e-5, atol=1e-5)


def test_an_error_in_a_loop_leaves_the_state_of_a_cell_as_it_was() -> None:
    cell = wl.nn.Buffer(wl.asarray(numbers(ROWS, SIZE)))

    @wl.jit
    def f(cell: Any, at: Any, x: Any) -> Any:
        def body(at: Any, _: Any) -> Any:
            cell.assign(cell.at[at].set(x))
            return at + 1, cell[0, 0]

        return wl.scan(body, at, None, length=4)

    f(cell, wl.tensor(ROWS - 4), wl.ones(SIZE))
    np.testing.assert_array_equal(cell[-5:].numpy()[:, 0] == 1, [False, True, True, True, True])
    before = cell.numpy().copy()
    with pytest.raises(wl.errors.IndexOutOfRange):
        f(cell, wl.tensor(ROWS - 2), wl.zeros(SIZE))
    np.testing.assert_array_equal(cell.numpy(), before)


# --- a step of decoding


@pytest.fixture(scope="module")
def model() -> Any:
    return wl.models.GPT(30, 300, SIZE, 2, 3, key=wl.random.key(0)).eval()


def test_a_step_of_decoding_copies_no_cache(model: Any) -> None:
    """Also where gradients are enabled: tokens have none, and what a cell is given has none."""

    @wl.jit
    def step(model: Any, token: Any, cache: Any) -> Any:
        logits, _ = model.step(token, cache)
        return wl.argmax(logits, axis=-1)

    cache, token = model.new_cache(1, ROWS), wl.tensor([1])
    assert not _copies(step, model, token, cache)
    step(model, token, cache)
    kept = places(cache)
    token = step(model, token, cache)
    assert places(cache) == kept
    assert cache.lengths.tolist() == [2]
    with wl.using_backend("numpy"):
        other = model.new_cache(1, ROWS)
        for _ in range(2):
            logits, _ = model.step(wl.tensor([1]), other)
    assert token.tolist() == wl.argmax(logits, axis=-1).tolist()


def test_a_scan_over_tokens_copies_caches_once_for_all(model: Any) -> None:
    @wl.jit
    def write(model: Any, token: Any, cache: Any) -> Any:
        def body(token: Any, _: Any) -> Any:
            logits, _ = model.step(token, cache)
            return wl.argmax(logits, axis=-1), token

        return wl.scan(body, token, None, length=5)

    cache, token = model.new_cache(1, ROWS), wl.tensor([1])
    copies = _copies(write, model, token, cache)
    assert not _within(copies)
    assert len(copies) <= 6
    (_, tokens) = write(model, token, cache)
    found = wl.generation.greedy(model, [1], 4)
    np.testing.assert_array_equal(tokens.numpy()[:, 0], found)


def test_what_is_recorded_keeps_its_cache(model: Any) -> None:
    """A step whose result may be differentiated leaves the cache that it was made of alone."""
    step = wl.jit(lambda model, token, cache: model.step(token, cache)[0])
    cache = model.new_cache(1, ROWS)
    step(model, wl.tensor([1]), cache)
    logits = step(model, wl.tensor([2]), cache)
    step(model, wl.tensor([3]), cache)
    logits.sum().backward()
    found = model.tokens.weight.grad.numpy().copy()
    model.zero_grad()
    other = model.new_cache(1, ROWS)
    model.step(wl.tensor([1]), other)
    want = wl.grad(lambda model: model.step(wl.tensor([2]), other.cut())[0].sum())(model)["tokens.weight"]
    np.testing.assert_allclose(found, want.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_nobody_sees_change_what_he_holds_of_a_cache(model: Any, seed: int) -> None:
    """A random sequence of use: steps, scans and recorded steps write in place or not, and it makes no difference."""
    rng = np.random.default_rng(seed)

    @wl.jit
    def step(model: Any, token: Any, cache: Any) -> Any:
        return wl.argmax(model.step(token, cache)[0], axis=-1)

    @wl.jit
    def logits(model: Any, token: Any, cache: Any) -> Any:
        return model.step(token, cache)[0]

    @wl.jit
    def scanned(model: Any, tokens: Any, cache: Any) -> Any:
        return wl.scan(lambda _, token: (None, model.step(token, cache)[0]), None, tokens)[1]

    caches = [(model.new_cache(1, 64), [])]
    held: list[tuple[Any, Any]] = []  # a tensor or a view of one, and what its numbers were
    for _ in range(40):
        cache, read = caches[rng.integers(len(caches))]
        do, token = rng.choice(["step", "logits", "scan", "hold", "copy", "back", "let go"]), int(rng.integers(30))
        if do == "step":
            step(model, wl.tensor([token]), cache)
            read.append(token)
        elif do == "logits":
            with wl.no_grad() if rng.random() < 0.5 else wl.enable_grad():
                held.append((found := logits(model, wl.tensor([token]), cache), found.numpy().copy()))
            read.append(token)
        elif do == "scan":
            more = rng.integers(30, size=(3, 1))
            scanned(model, wl.asarray(more), cache)
            read.extend(more[:, 0].tolist())
        elif do == "hold":
            cell = list(cache.buffers())[rng.integers(len(list(cache.buffers())))]
            value = cell.value if rng.random() < 0.5 else cell.value[:, ...]
            held.append((value, value.numpy().copy()))
        elif do == "copy" and len(caches) < 4:
            caches.append((cache.copy(), list(read)))
        elif do == "back" and read:
            cache.rewind(len(read) - 1)
            read.pop()
        elif do == "let go" and held:
            held.pop(rng.integers(len(held)))
        if len(read) > 55:
            cache.rewind(0)
            read.clear()
    for value, was in held:
        np.testing.assert_array_equal(value.numpy(), was)
    for cache, read in caches:
        with wl.using_backend("numpy"):
            want = model(wl.tensor([[*read, 7]]))[:, -1]
        np.testing.assert_allclose(logits(model, wl.tensor([7]), cache).numpy(), want.numpy(), rtol=1e-4, atol=1e-5)
