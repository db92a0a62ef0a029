"""Settings belong to the context: tasks, threads and generators that take turns do not disturb each other."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.core.context import current, modules
from wonderland.core.settings import setting

# A setting of each kind: a block of it, and what is seen of it inside and outside.
BLOCKS: dict[str, tuple[Callable[[], setting], Callable[[], Any]]] = {
    "no_grad": (wl.no_grad, lambda: (wl.ones(1).requires_grad_() * 2).requires_grad),
    "using_backend": (lambda: wl.using_backend("numpy"), wl.get_backend),
    "strict": (wl.shape.strict, lambda: current().settings.strict_broadcast),
    "nans": (wl.debug.nans, lambda: current().settings.debug is None),
}
# In which order two of them begin (a, b) and end (A, B): side by side, nested, overlapping, one after the other.
ORDERS = [order for order in map("".join, itertools.permutations("abAB")) if order.index("a") < order.index("A")]
ORDERS = [order for order in ORDERS if order.index("b") < order.index("B")]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        yield loop


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    with wl.using_backend("native"):
        yield


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", BLOCKS)
def test_tasks_that_overlap(name: str, order: str) -> None:
    block, look = BLOCKS[name]
    outside = look()
    seen: list[Any] = []

    async def main() -> None:
        gates = {step: asyncio.Event() for step in order}
        done = {step: asyncio.Event() for step in order}

        async def task(begin: str, end: str) -> None:
            await gates[begin].wait()
            with block():
                seen.append(look() != outside)
                done[begin].set()
                await gates[end].wait()
                seen.append(look() != outside)
            seen.append(look() == outside)
            done[end].set()

        tasks = [asyncio.create_task(task("a", "A")), asyncio.create_task(task("b", "B"))]
        for step in order:
            gates[step].set()
            await done[step].wait()
            seen.append(look() == outside)
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert seen == [True] * 10
    assert look() == outside


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", BLOCKS)
def test_generators_that_take_turns(name: str, order: str) -> None:
    """They share the context, so the consumer sees their settings; but in the end nothing is left of them."""
    block, look = BLOCKS[name]
    outside = look()

    def steps() -> Iterator[bool]:
        with block():
            yield look() != outside
        yield True

    generators = {"a": steps(), "b": steps()}
    for step in order:
        next(generators[step.lower()])
    assert look() == outside


@pytest.mark.parametrize("name", BLOCKS)
def test_threads_have_their_own(name: str) -> None:
    block, look = BLOCKS[name]
    seen: dict[str, Any] = {}
    default = contextvars.Context().run(look)

    def run(what: str, f: Callable[[], Any]) -> None:
        thread = threading.Thread(target=lambda: seen.update({what: f()}))
        thread.start()
        thread.join()

    with block():
        run("fresh", look)
        run("copied", functools.partial(contextvars.copy_context().run, look))
        mine = look()
    assert seen == {"fresh": default, "copied": mine}

    def enter_and_stay() -> None:
        block().__enter__()

    before = look()
    run("stays there", enter_and_stay)
    assert look() == before


def test_tasks_inherit_and_keep_what_was_there_when_they_were_made() -> None:
    async def look() -> bool:
        await asyncio.sleep(0)
        return current().settings.grad_enabled

    async def main() -> list[bool]:
        with wl.no_grad():
            inside = asyncio.create_task(look())
        outside = asyncio.create_task(look())
        with wl.no_grad():
            in_thread = await asyncio.to_thread(lambda: current().settings.grad_enabled)
        return [await inside, await outside, in_thread]

    assert asyncio.run(main()) == [False, True, False]


def test_a_block_that_ends_in_another_context_takes_nothing_from_it() -> None:
    block = wl.no_grad()
    context = contextvars.copy_context()
    context.run(block.__enter__)
    with wl.no_grad():
        block.__exit__(None, None, None)
        assert not current().settings.grad_enabled
    assert current().settings.grad_enabled
    assert not context.run(lambda: current().settings.grad_enabled)


def test_one_block_is_entered_several_times() -> None:
    block = wl.no_grad()
    with block:
        with block, wl.enable_grad():
            assert current().settings.grad_enabled
        assert not current().settings.grad_enabled
    assert current().settings.grad_enabled


def test_a_choice_inside_a_block_ends_with_it() -> None:
    with wl.using_backend("numpy"):
        wl.set_backend("native")
        assert wl.get_backend() == "native"
        with wl.no_grad():
            wl.set_backend("numpy")
        assert wl.get_backend() == "numpy"  # no_grad is another setting
    assert wl.get_backend() == "native"
    assert current().settings.grad_enabled


def test_a_choice_inside_a_transformed_function_stays() -> None:
    def f(x: Any) -> Any:
        wl.set_backend("numpy")
        return (x * x).sum()

    with wl.using_backend("native"):
        for transformed in (wl.grad(f), wl.vmap(f), wl.jit(f), wl.grad(wl.jit(f))):
            wl.set_backend("native")
            transformed(wl.ones((2, 2)))
            assert wl.get_backend() == "numpy"


class TestDecorators:
    def test_a_function(self) -> None:
        @wl.no_grad()
        def f(x: Any) -> Any:
            """Twice."""
            return 2 * x

        assert f.__doc__ == "Twice."
        assert not f(wl.ones(1).requires_grad_()).requires_grad
        assert current().settings.grad_enabled

    def test_a_coroutine(self) -> None:
        seen = []

        @wl.no_grad()
        async def f(order: list[asyncio.Event]) -> None:
            for event in order:
                await event.wait()
                seen.append(current().settings.grad_enabled)

        async def main() -> None:
            events = [asyncio.Event(), asyncio.Event()]
            tasks = [asyncio.create_task(f(events)) for _ in range(2)]
            for event in events:
                event.set()
                await asyncio.sleep(0)
                assert current().settings.grad_enabled
            await asyncio.gather(*tasks)
            await f([])
            assert current().settings.grad_enabled

        asyncio.run(main())
        assert seen == [False] * 4

    def test_a_generator_has_it_for_its_own_steps_alone(self) -> None:
        closed = []

        @wl.no_grad()
        def f() -> Iterator[Any]:
            got = []
            try:
                for _ in range(2):
                    with contextlib.suppress(ArithmeticError):
                        got.append((yield current().settings.grad_enabled))
                return got  # type: ignore[return-value]
            finally:
                closed.append(current().settings.grad_enabled)

        generator = f()
        assert next(generator) is False
        assert current().settings.grad_enabled
        assert generator.throw(ArithmeticError()) is False  # type: ignore[attr-defined]
        assert current().settings.grad_enabled
        with pytest.raises(StopIteration) as end:
            generator.send("sent")  # type: ignore[attr-defined]
        assert end.value.value == ["sent"]
        unfinished = f()
        next(unfinished)
        unfinished.close()  # type: ignore[attr-defined]
        assert closed == [False, False]
        assert current().settings.grad_enabled

    def test_an_asynchronous_generator_is_refused(self) -> None:
        with pytest.raises(wl.errors.InputError, match="asynchronous generator"):

            @wl.no_grad()
            async def f() -> Any:
                yield 1


# --- transformations


def test_a_loop_inside_a_traced_function_runs_the_tasks_of_others_untraced(
    loop: asyncio.AbstractEventLoop,
) -> None:
    """Those made outside compute with numbers; those made inside belong to the transformation."""
    model = nn.Linear(2, 1, bias=False)
    weight = model.weight.value
    seen: dict[str, Any] = {}

    async def other() -> None:
        seen["trace"], seen["modules"] = current().trace, [*modules.called]
        seen["weight"] = model.weight.value is weight
        seen["number"] = float((model.weight * 2).sum())

    async def own(x: Any) -> Any:
        await asyncio.sleep(0)
        return (model(x) ** 2).sum()

    def f(model: Any, x: Any) -> Any:
        return loop.run_until_complete(own(x))

    x = wl.ones((3, 2))
    for transformed in (wl.grad(f), wl.jit(wl.grad(f)), wl.grad(wl.jit(f))):
        task = loop.create_task(other())
        gradient = transformed(model, x)["weight"]
        assert task.done()
        assert task.exception() is None
        assert seen == {"trace": None, "modules": [], "weight": True, "number": float(2 * weight.sum())}
        want = wl.grad(lambda w, x=x: ((x @ w) ** 2).sum())(weight)
        np.testing.assert_allclose(gradient, want, rtol=1e-5)


def test_a_task_that_outlives_its_trace_is_told_so(loop: asyncio.AbstractEventLoop) -> None:
    tasks = []

    ended = asyncio.Event()

    async def late() -> Any:
        await ended.wait()
        return wl.ones(2) * 2

    async def start() -> None:
        tasks.append(loop.create_task(late()))

    def f(x: Any) -> Any:
        loop.run_until_complete(start())
        return x + 1

    assert wl.jit(f)(wl.ones(2)).tolist() == [2.0, 2.0]
    ended.set()
    with pytest.raises(wl.errors.TraceError, match="after the tracing has ended"):
        loop.run_until_complete(tasks[0])


def test_threads_with_a_copied_context_differentiate_at_once() -> None:
    """Two transformations of one model in two threads, each begun in a copy of the same context."""
    model = nn.Linear(3, 1)
    met = threading.Barrier(2)
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        def loss(model: Any) -> Any:
            met.wait(10)
            y = model(wl.full((2, 3), float(k))).sum()
            met.wait(10)
            return y

        found[k] = wl.grad(loss)(model)["weight"]

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(work, k)) for k in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {k: g.tolist() for k, g in found.items()} == {k: [[2.0 * k]] * 3 for k in (1, 2)}
    assert not any(cell._inside for cell in wl.tree.leaves(model))


def test_functional_calls_in_two_threads() -> None:
    model = nn.Linear(1, 1, bias=False)
    own = model.weight.value
    met = threading.Barrier(2)
    found: dict[int, float] = {}

    def read(x: Any) -> Any:
        met.wait(10)
        y = nn.Linear.forward(model, x)
        met.wait(10)
        return y

    model.forward = read  # type: ignore[method-assign]

    def work(k: int) -> None:
        found[k] = float(nn.functional_call(model, {"weight": wl.full((1, 1), float(k))}, wl.ones(1))[0])

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {1: 1.0, 2: 2.0}
    assert model.weight.value is own


def test_functional_call_leaves_the_imperative_leaf_alone() -> None:
    model = nn.Linear(2, 1, bias=False)
    model.weight.requires_grad_()
    guest = wl.ones((2, 1)).requires_grad_()
    nn.functional_call(model, {"weight": guest}, wl.ones((1, 2))).sum().backward()
    assert guest.grad.tolist() == [[1.0], [1.0]]
    assert model.weight.grad is None
    model(wl.ones((1, 2))).sum().backward()
    assert model.weight.grad.tolist() == [[1.0], [1.0]]  # type: ignore[attr-defined]


def test_a_traced_value_does_not_get_into_a_cell_outside() -> None:
    buffer, kept = nn.Buffer(wl.zeros(2)), []
    wl.jit(lambda x: kept.append(x) or x)(wl.ones(2))
    with pytest.raises(wl.errors.TraceError, match="outside the transformation"):
        buffer.assign(kept[0])
    assert buffer.tolist() == [0.0, 0.0]
