"""Threads: the same bits for any number of them, no work while idle, and peace with forks, other threads and Ctrl-C."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import chunks, native, on_threads
from tests.engines.test_program import numbers

F = wl.nn.functional


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = wl.get_threads()
    with wl.using_backend("native"):
        yield
    wl.set_threads(before)


def _conv_gradients(x: Any, w: Any) -> Any:
    return wl.grad(lambda x, w: wl.sin(F.conv2d(x, w, padding=1)).sum(), (0, 1))(x, w)


def _attention(q: Any) -> Any:
    f = lambda q: F.dot_product_attention(q, q, q, is_causal=True)
    return [f(q), wl.grad(lambda q: wl.sin(f(q)).sum())(q)]


def _layer_norm(x: Any, w: Any) -> Any:
    return wl.grad(lambda x, w: wl.sin(F.layer_norm(x, w.shape, w, w)).sum(), (0, 1))(x, w)


LARGE: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "elementwise": (lambda x: wl.tanh(x) * wl.exp(-x * x), [(300_001,)]),
    "sums": (lambda x: [x.sum(), (x * x).sum(axis=0), x.mean(axis=1), x.max()], [(999, 1003)]),
    "sums of an odd number": (lambda x: [x.sum(), wl.sin(x).sum(), x.max()], [(1_000_003,)]),
    "sums over outer axes": (lambda x: [wl.sin(x).sum(axis=(0, 1)), x.sum(axis=(0, 2))], [(64, 100, 65)]),
    "softmax": (lambda x: [wl.softmax(x), wl.logsumexp(x, axis=0)], [(513, 1000)]),
    "cross entropy": (lambda x: wl.grad(lambda x: wl.log_softmax(x)[:, 0].mean())(x), [(2000, 100)]),
    "products": (lambda x, y: [x @ y, wl.relu(x @ y + y[0]), (x @ y).sum(axis=0)], [(301, 700), (700, 333)]),
    "thin products": (lambda x, y: [x.mT @ y, x.mT @ x], [(20_000, 17), (20_000, 5)]),
    "dot products": (lambda x, y: [x @ y, y @ y], [(200, 50_000), (50_000,)]),
    "batches of products": (lambda x: x @ x.mT, [(40, 60, 70)]),
    "convolutions": (_conv_gradients, [(8, 28, 28, 16), (3, 3, 16, 32)]),
    "attention": (_attention, [(2, 200, 4, 32)]),
    "layer normalisation": (_layer_norm, [(3000, 130), (130,)]),
    "gather and scatter": (lambda x: x.at[(x[:, 0] * 99).astype(wl.int64) % 700].add(wl.sin(x)), [(7000, 64)]),
    "running sums": (lambda x: [wl.cumsum(x, axis=0), wl.cumsum(x, axis=1)], [(700, 900)]),
    "sorting": (lambda x: [wl.sort(x, axis=-1), wl.argmax(x, axis=-1)], [(300, 1000)]),
    "random numbers": (lambda x: x + wl.random.normal(x.shape, key=wl.random.key(3)), [(300, 1000)]),
    "loops": (lambda x: wl.scan(lambda c, row: (wl.tanh(c @ row), c.sum()), x[0], x), [(12, 200, 200)]),
}


@pytest.mark.parametrize("name", LARGE)
def test_results_do_not_depend_on_the_number_of_threads(name: str) -> None:
    f, shapes = LARGE[name]
    program, arrays = native(f, *[numbers(*shape, seed=i) for i, shape in enumerate(shapes)])
    assert chunks(program) > 1 or name == "sums of an odd number"
    on_threads(program, arrays, (1, 2, 3, 2, 1))


def test_training_does_not_depend_on_the_number_of_threads() -> None:
    def train(n: int) -> list[bytes]:
        wl.set_threads(n)
        wl.random.seed(0)
        model = wl.nn.Sequential(wl.nn.Linear(100, 300), wl.relu, wl.nn.Linear(300, 10))
        step, x = _step(), wl.asarray(numbers(500, 100))
        losses = [step(model, x).numpy() for _ in range(5)]
        return [v.tobytes() for v in [*losses, *[p.numpy() for p in model.parameters()]]]

    assert train(1) == train(2) == train(3)


def _step() -> Any:
    @wl.jit
    def step(model: Any, x: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda m: (wl.sin(m(x)) ** 2).mean())(model)
        for path, parameter in model.named_parameters():
            parameter.assign(parameter - 0.1 * grads[path])
        return loss

    return step


def _large() -> tuple[Any, Any, Any]:
    """A compiled function that shares out its work, an argument, and the result."""
    f = wl.jit(lambda x: (wl.tanh(x) @ x).sum(axis=0))
    x = wl.asarray(numbers(300, 300))
    return f, x, f(x).numpy()


# --- other threads


def _together(jobs: list[Callable[[], None]]) -> None:
    """Run functions at the same time; what one of them raises is raised."""
    errors: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            with wl.using_backend("native"):
                job()
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_threads_may_call_the_same_and_different_functions() -> None:
    wl.set_threads(3)
    f, x, want = _large()
    g = wl.jit(lambda x: wl.softmax(x @ x).sum(axis=1))
    other = g(x).numpy()

    def calls() -> None:
        for _ in range(15):
            np.testing.assert_array_equal(f(x), want)
            np.testing.assert_array_equal(g(x), other)

    _together([calls] * 4)


def test_the_number_of_threads_may_change_while_others_run() -> None:
    f, x, want = _large()
    stop = threading.Event()

    def calls() -> None:
        while not stop.is_set():
            np.testing.assert_array_equal(f(x), want)

    def changes() -> None:
        for i in range(30):
            wl.set_threads(1 + i % 3)
            time.sleep(0.003)
        stop.set()

    _together([calls, calls, changes])


def test_two_threads_may_train_the_same_model() -> None:
    wl.set_threads(2)
    model = wl.nn.Sequential(wl.nn.Linear(50, 80), wl.relu, wl.nn.Linear(80, 10))
    step, x = _step(), wl.asarray(numbers(64, 50))
    first = step(model, x).item()

    def trains() -> None:
        for _ in range(60):
            assert np.isfinite(step(model, x).item())

    _together([trains, trains])
    assert all(np.isfinite(p.numpy()).all() for p in model.parameters())
    assert step(model, x).item() < first


# --- the process


def _run(code: str) -> str:
    """What a Python process prints."""
    source = str(pathlib.Path(wl.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "WONDERLAND_BACKEND": "native", "WONDERLAND_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_idle_threads_use_no_processor() -> None:
    wl.set_threads(2)
    f, x, _ = _large()
    f(x)
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_child_computes_on() -> None:
    """Also when another thread is in the middle of a call at that moment."""
    out = _run("""
        import os, sys, threading, time
        import numpy as np, wonderland as wl
        f = wl.jit(lambda x: (wl.tanh(x) @ x).sum(axis=0))
        x = wl.asarray(np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32))
        want = f(x).numpy()
        go = True
        def calls():
            while go:
                f(x)
        thread = threading.Thread(target=calls)
        thread.start()
        good = 0
        for _ in range(5):
            time.sleep(0.02)
            child = os.fork()
            if child == 0:
                os._exit(0 if all((f(x).numpy() == want).all() for _ in range(5)) else 1)
            good += os.waitpid(child, 0)[1] == 0
        go = False
        thread.join()
        print(good, (f(x).numpy() == want).all())
    """)
    assert out.split() == ["5", "True"]


INTERRUPTED = """
    import os, signal, threading
    import numpy as np, wonderland as wl

    class Model(wl.nn.Module):
        def __init__(self):
            self.a, self.b, self.c = (wl.nn.Parameter(wl.zeros((20, 20))) for _ in range(3))

    @wl.jit
    def step(model, x):
        y = wl.fori_loop(0, STEPS, lambda i, y: wl.tanh(y @ x), x)
        for p in (model.a, model.b, model.c):
            p.assign(p + 1 + 0 * y.mean())

    def state():
        return [float(p.numpy().mean()) for p in (model.a, model.b, model.c)]

    model, x = Model(), wl.asarray(np.full((200, 200), 0.001, np.float32))
    step(model, x)
    held = model.b.value  # cannot be updated in place
    caught = 0
    for delay in (0.0, 0.02, 0.05, 0.1):
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            step(model, x)
            timer.join()
        except KeyboardInterrupt:
            caught += 1
        assert len(set(state())) == 1, state()
    before = state()
    step(model, x)
    assert state() == [v + 1 for v in before]
    print(caught)
"""


def test_an_interrupted_step_leaves_old_or_new_state_and_no_mixture() -> None:
    assert int(_run(INTERRUPTED.replace("STEPS", "300"))) == 4


ENDLESS = """
    import os, signal, threading
    import wonderland as wl

    count = wl.nn.Buffer(wl.zeros(()))

    @wl.jit
    def f(limit):
        last = wl.while_loop(lambda x: x < limit, lambda x: x + 1, wl.zeros(()))
        count.assign(count + 1)
        return last

    print(f(10.0).item())
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        f(1e30)  # adding 1 to a large number does not change it
    except KeyboardInterrupt:
        print("interrupted")
    print(f(20.0).item(), count.item())
"""


def test_an_endless_loop_can_be_interrupted() -> None:
    assert _run(ENDLESS).split() == ["10.0", "interrupted", "20.0", "2.0"]


def test_a_long_loop_goes_on_after_a_look_at_signals() -> None:
    f = wl.jit(lambda x: wl.fori_loop(0, 600_000, lambda i, y: y + i, x))
    assert f(wl.zeros((), dtype=wl.int64)).item() == 600_000 * 599_999 // 2
