"""Ctrl-C at random moments, thousands of times: `python -m tools.interrupts --seconds 60 --seed 1`.

Compiled functions of several kinds run one after the other, while a timer sends signals. An interrupt may come anywhere
inside a call, as CPython's own Ctrl-C does; after each one the state must be all old or all new, nobody may wait for
ever, and the next call must be right. A call that does not end shows where it hangs and ends the process.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import wonderland as wl

PATIENCE = 60  # seconds that a call may take
F = wl.nn.functional


class Storm:
    """Raises KeyboardInterrupt at random moments inside `attempt`, and nowhere else."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.raised = self.attempts = 0
        self.places: collections.Counter[str] = collections.Counter()
        signal.signal(signal.SIGALRM, self._hear)
        sys.unraisablehook = id  # silence: those that come while an object is being freed are lost, as always

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._arm()
        inner = frame
        while frame is not None and frame.f_code not in OURS:
            frame = frame.f_back
        if frame is not None and frame is not inner and frame.f_code is Storm.attempt.__code__ and inner is not None:
            self.raised += 1
            self.places[f"{os.path.basename(inner.f_code.co_filename)}:{inner.f_code.co_name}"] += 1
            raise KeyboardInterrupt

    def _arm(self) -> None:
        signal.setitimer(
            signal.ITIMER_REAL, self.random.choice([1e-4, 4e-4, 2e-3, 1e-2]) * (0.1 + self.random.random())
        )

    def attempt(self, f: Callable[[], Any]) -> bool:
        """Whether f got through."""
        self.attempts += 1
        try:
            self._arm()
            f()
        except KeyboardInterrupt:
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return True


OURS = {f.__code__ for f in (Storm.attempt, Storm._arm, Storm._hear)}


class Counters(wl.nn.Module):
    """State that counts the steps in several ways; all must agree."""

    def __init__(self, size: int = 12) -> None:
        self.steps = wl.nn.Buffer(wl.zeros((), dtype=wl.int64))
        self.a = wl.nn.Parameter(wl.zeros(size))
        self.b, self.c = (wl.nn.Parameter(wl.zeros((size, size))) for _ in range(2))

    def counts(self) -> list[float]:
        values = [self.steps.numpy(), *[p.numpy() for p in (self.a, self.b, self.c)]]
        return [float(v) for value in values for v in (value.min(), value.max())]

    def check(self) -> float:
        counts = self.counts()
        assert len(set(counts)) == 1, f"half-new state: {counts}"
        return counts[0]


def advance(model: Counters, x: Any) -> Any:
    """One step; its work on x does not change what is counted."""
    y = wl.tanh(x @ x)
    model.a.assign(model.a + 1)  # in place
    model.b.assign(model.b + 1 + 0 * y.mean())
    model.c.assign(model.c.T + wl.ones_like(model.c))  # cannot be updated in place
    model.steps.assign(model.steps + 1)
    return y.sum()


def counted(model: Counters, x: Any) -> Any:
    """The same, all of it in place."""
    y = wl.tanh(x @ x)
    for cell in (model.a, model.b, model.c, model.steps):
        cell.assign(cell + 1)
    return y.sum()


def with_scan(model: Counters, x: Any) -> Any:
    last, _ = wl.scan(lambda c, row: (wl.tanh(c + row), None), x[0], x)
    return advance(model, x) + last.sum()


def with_numpy(model: Counters, x: Any) -> Any:
    return advance(model, x) + wl.linalg.inv(x @ x.T + 99 * wl.eye(x.shape[0])).sum()


def with_inner(inner: Any) -> Callable[..., Any]:
    return lambda model, x: advance(model, x) + inner(x).sum() + wl.grad(lambda x: inner(x).sum())(x).sum()


def trained(model: Any, optimizer: Any, x: Any) -> Any:
    loss, grads = wl.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
    optimizer.step(grads)
    return loss


def numbers(*shape: int) -> Any:
    return wl.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32) / shape[-1])


class Counting:
    """Steps of counters by one compiled function, which is made anew now and then."""

    def __init__(self, storm: Storm, body: Callable[..., Any], hold: bool = False, backend: str = "native") -> None:
        self.storm, self.body, self.hold, self.backend = storm, body, hold, backend
        self.renew()

    def renew(self) -> None:
        body = self.body
        self.step = wl.jit(lambda model, x: body(model, x))
        self.model, self.x = Counters(), numbers(12, self.storm.random.randrange(3, 40))
        self.x = self.x @ self.x.T if self.x.shape[0] != self.x.shape[1] else self.x
        self.calls = 0

    def go(self, several: int) -> None:
        with wl.using_backend(self.backend):
            held = [self.model.b.value] if self.hold else []
            before = self.model.check()
            got_through = self.storm.attempt(lambda: self.step(self.model, self.x))
            after = self.model.check()
            assert after in ((before + 1,) if got_through else (before, before + 1)), (before, after)
            for k in range(several):  # undisturbed
                self.step(self.model, self.x)
                assert self.model.check() == after + k + 1
            del held
        self.calls += 1
        if self.calls > 30:
            self.renew()


class Fresh(Counting):
    """A new function for every call: tracing and compiling are interrupted, too."""

    def go(self, several: int) -> None:
        self.renew()
        super().go(1)


class Training:
    """Adam: what it has counted and the moments of all parameters belong together."""

    def __init__(self, storm: Storm) -> None:
        self.storm = storm
        self.model = wl.nn.Sequential(wl.nn.Linear(8, 16), wl.nn.Tanh(), wl.nn.Linear(16, 1))
        self.optimizer = wl.optim.Adam(self.model, lr=1e-3)
        self.step, self.x = wl.jit(trained), numbers(5, 8)
        self.twin = [v.copy() for v in self.values()]

    def values(self) -> list[Any]:
        return [np.array(v) for part in (self.model, self.optimizer) for v in part.state_dict().values()]

    def go(self, several: int) -> None:
        old = self.values()
        got_through = self.storm.attempt(lambda: self.step(self.model, self.optimizer, self.x))
        now = self.values()
        self.model_and_optimizer(old)
        self.step(self.model, self.optimizer, self.x)
        new = self.values()
        same = [all(np.array_equal(a, b) for a, b in zip(now, other, strict=True)) for other in (old, new)]
        assert same[1] if got_through else any(same), "half-new state of an optimizer"

    def model_and_optimizer(self, values: list[Any]) -> None:
        """Put a state back."""
        rest = iter(values)
        for part in (self.model, self.optimizer):
            part.load_state_dict({name: wl.asarray(next(rest)) for name in part.state_dict()})


class Beside:
    """Another thread steps the same model meanwhile; it is never interrupted, and never waits for one that was."""

    def __init__(self, storm: Storm) -> None:
        self.storm, self.model, self.x = storm, Counters(), numbers(12, 12)
        self.step = wl.jit(advance)
        self.step(self.model, self.x)

    def go(self, several: int) -> None:
        done = threading.Event()

        def steps() -> None:
            with wl.using_backend("native"):
                for _ in range(20):
                    self.step(self.model, self.x)
            done.set()

        threading.Thread(target=steps, daemon=True).start()
        while not done.is_set():
            self.storm.attempt(lambda: self.step(self.model, self.x))
        self.model.check()


class Eager:
    """Transformations outside `jit`: an interrupt leaves no interpreter behind."""

    def __init__(self, storm: Storm) -> None:
        self.storm, self.x = storm, numbers(4, 5)
        self.inner = wl.jit(lambda x: wl.sin(x) * 2)
        self.model = Counters(5)

    def compute(self) -> Any:
        def f(x: Any) -> Any:
            return (self.inner(x) + wl.tanh(x @ self.model.b)).sum()

        return wl.vmap(wl.grad(f))(self.x), wl.grad(lambda model: f(self.x) + model.c.sum())(self.model)["c"]

    def go(self, several: int) -> None:
        self.storm.attempt(self.compute)
        rows, c = self.compute()
        np.testing.assert_allclose(rows, 2 * np.cos(self.x), rtol=1e-5)
        np.testing.assert_array_equal(c, np.ones((5, 5)))
        self.model.check()


class Twins(wl.nn.Module):
    """Parameters that are equal between calls."""

    def __init__(self) -> None:
        self.a, self.b = wl.nn.Parameter(wl.ones(16)), wl.nn.Parameter(wl.ones(16))


def grown(model: Twins) -> None:
    for cell in (model.a, model.b):
        cell.assign((cell + 1) % 500)  # so that float32 has all products and their sum


class Recording:
    """Results that are differentiated after steps that have overwritten the parameters."""

    def __init__(self, storm: Storm) -> None:
        self.storm, self.model, self.x = storm, Twins(), wl.ones(16)
        self.step, self.dot = wl.jit(grown), wl.jit(lambda model, x: (model.a * model.b * x).sum())

    def go(self, several: int) -> None:
        losses: list[wl.Tensor] = []
        for _ in range(1 + several):
            self.storm.attempt(lambda: losses.append(self.dot(self.model, self.x)))
            self.storm.attempt(lambda: self.step(self.model))
        for loss in losses:
            loss.backward()
            a, b = np.array(self.model.a.grad), np.array(self.model.b.grad)
            assert (a == b).all(), (a, b)
            assert (a * b).sum() == loss.item(), (a, loss)
            for p in (self.model.a, self.model.b):
                p.zero_grad()
        np.testing.assert_array_equal(self.model.a.numpy(), self.model.b.numpy())


class LazyLayers:
    """Layers whose parameters are made by the first call."""

    def __init__(self, storm: Storm) -> None:
        self.storm = storm

    def go(self, several: int) -> None:
        model = wl.nn.Sequential(wl.nn.Linear(None, 4), wl.nn.BatchNorm1d(4), wl.nn.Linear(None, 3))
        step, x = wl.jit(lambda model, x: model(x)), numbers(6, self.storm.random.randrange(2, 30))
        self.storm.attempt(lambda: step(model, x))
        assert step(model, x).shape == (6, 3)
        model.eval()
        np.testing.assert_allclose(step(model, x), model(x), rtol=1e-4, atol=1e-5)


class Threads:
    """The number of threads changes."""

    def __init__(self, storm: Storm) -> None:
        self.storm, self.f, self.x = storm, wl.jit(lambda x: (wl.tanh(x) @ x).sum(axis=0)), numbers(160, 160)
        self.want = self.f(self.x).numpy()

    def go(self, several: int) -> None:
        for n in (1, 3, 2):
            self.storm.attempt(lambda n=n: wl.set_threads(n))  # type: ignore[misc]
            self.storm.attempt(lambda: self.f(self.x))
            np.testing.assert_array_equal(self.f(self.x).numpy(), self.want)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.interrupts", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="kinds whose name has this in it")
    parser.add_argument("--places", action="store_true", help="show where the interrupts came")
    options = parser.parse_args(arguments)
    storm = Storm(options.seed)
    inner = wl.jit(lambda x: wl.sin(x) * 2)
    kinds: dict[str, Callable[[], Any]] = {
        "steps": lambda: Counting(storm, advance),
        "steps, held state": lambda: Counting(storm, advance, hold=True),
        "steps with NumPy": lambda: Counting(storm, advance, backend="numpy"),
        "scans": lambda: Counting(storm, with_scan),
        "fallbacks": lambda: Counting(storm, with_numpy),
        "nested": lambda: Counting(storm, with_inner(inner)),
        "first calls": lambda: Fresh(storm, advance),
        "first calls, scans": lambda: Fresh(storm, with_scan),
        "first calls, nested": lambda: Fresh(storm, with_inner(wl.jit(lambda x: wl.cos(x) * 2))),
        "eager": lambda: Eager(storm),
        "lazy layers": lambda: LazyLayers(storm),
        "recorded": lambda: Recording(storm),
        "training": lambda: Training(storm),
        "two threads": lambda: Beside(storm),
        "number of threads": lambda: Threads(storm),
    }
    chosen = [name for name in kinds if options.only in name]
    made: dict[str, Any] = {}
    rounds = dict.fromkeys(chosen, 0)
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for name in chosen:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            share = time.monotonic() + min(1.0, options.seconds / 2 / len(chosen))
            while time.monotonic() < min(share, end):
                if name not in made:
                    made[name] = kinds[name]()
                made[name].go(storm.random.randrange(3))
                rounds[name] += 1
            faulthandler.cancel_dump_traceback_later()
    signal.signal(signal.SIGALRM, signal.SIG_IGN)  # one that is late must not end the process
    print(f"{storm.raised} interrupts in {storm.attempts} calls; no hang, no half-new state, every next call right")
    if options.places:
        print(rounds)
        for place, count in storm.places.most_common(60):
            print(f"{count:7}  {place}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
