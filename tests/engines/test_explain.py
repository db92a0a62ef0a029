"""Looking inside: the steps, what they cost, the memory plan, measured times and the picture."""

from __future__ import annotations

import math
import xml.etree.ElementTree
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
import wonderland.linalg
from wonderland import nn
from wonderland.engines.native.caches import of_this_machine
from wonderland.engines.native.memory import PLANNED, lifetimes
from wonderland.inspect import explanation as explaining
from wonderland.inspect import limits as measuring
from wonderland.inspect.limits import Limits

F = 4  # bytes of a float32


def step_of(told: Any, start: str) -> Any:
    return next(line for line in told.steps if line.what.startswith(start))


# --- what the steps are, and what they cost


def test_a_product_with_what_is_fused_into_it() -> None:
    told = wl.explain(lambda x, w, b: wl.relu(x @ w + b), wl.ones((8, 4)), wl.ones((4, 16)), wl.ones(16))
    (line,) = told.steps
    assert line.what.startswith("matmul (8, 4) @ (4, 16) + add")
    assert line.kind == "matrix product"
    extra = line.multiply_adds - 8 * 4 * 16
    assert extra % (8 * 16) == 0
    assert 2 <= extra // (8 * 16) <= 3  # the sum with the bias, and the comparison of relu
    assert line.bytes == F * (8 * 4 + 4 * 16 + 16 + 8 * 16)
    assert line.intensity == line.multiply_adds / line.bytes
    assert (told.arena_bytes, told.routines, told.fallbacks) == (0, 1, {})


def test_a_plain_product_counts_what_the_graph_counts() -> None:
    def f(x: Any, w: Any, v: Any) -> Any:
        return (x @ w) @ v

    args = wl.ones((3, 40)), wl.ones((40, 50)), wl.ones((50, 7))
    told = wl.explain(f, *args)
    assert told.multiply_adds == wl.count(f, *args).multiply_adds == 3 * 40 * 50 + 3 * 50 * 7


def test_softmax_is_one_kernel_that_reads_and_writes_once() -> None:
    told = wl.explain(lambda x: wl.exp(x - x.max(axis=1)[:, None]) / wl.exp(x - x.max(axis=1)[:, None]).sum(1)[:, None],
                      wl.ones((32, 64)))  # fmt: skip
    (line,) = told.steps
    assert line.what.startswith("kernel over (32, 64): max, subtract, exp, sum")
    assert line.kind == "kernel"
    assert line.bytes == 2 * F * 32 * 64


def test_moving_elements_is_no_arithmetic() -> None:
    (line,) = wl.explain(lambda x: x.T, wl.ones((5, 6))).steps
    assert (line.what, line.multiply_adds, line.bytes) == ("kernel over (6, 5): copy", 0, 2 * F * 30)
    assert line.kind == "copy"


def test_of_a_table_only_what_is_taken_counts() -> None:
    told = wl.explain(lambda table, i: table[i], wl.ones((1000, 8)), wl.tensor([1, 2, 3], dtype=wl.int64))
    line = step_of(told, "kernel over (3, 8): ")
    assert "gather" in line.what
    assert line.bytes < F * 1000 * 8 / 4
    assert line.bytes >= 2 * F * 3 * 8


def test_a_convolution() -> None:
    x, w = wl.ones((2, 8, 9, 3)), wl.ones((3, 3, 3, 5))
    told = wl.explain(lambda x, w: nn.functional.conv2d(x, w, padding=1), x, w)
    line = step_of(told, "convolution")
    assert line.what == "convolution (2, 8, 9, 3) * (3, 3, 3, 5)"
    assert line.multiply_adds == 2 * 8 * 9 * 3 * 3 * 3 * 5


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    q, k = wl.ones((2, 20, 3, 8)), wl.ones((2, 20, 3, 8))  # heads behind the sequence
    told = wl.explain(lambda q, k, v: nn.functional.dot_product_attention(q, k, v, is_causal=causal), q, k, k)
    line = step_of(told, "attention of (2, 3, 20, 8), (2, 3, 20, 8)")
    pairs = 20 * 21 // 2 if causal else 20 * 20
    assert line.multiply_adds == 2 * 3 * pairs * (8 + 8)
    assert line.what.endswith("causal") == causal


def test_what_numpy_computes_is_named() -> None:
    told = wl.explain(lambda x: wl.linalg.svd(wl.exp(x), full_matrices=False)[1].sum(), wl.ones((8, 8)))
    assert set(told.fallbacks.values()) == {1}
    (name,) = told.fallbacks
    assert f"NumPy: {name} (8, 8)" in str(told)
    assert f"NumPy computes: {name}" in str(told)
    assert "NumPy computes: nothing" in str(wl.explain(lambda x: x + 1, wl.ones(3)))


# --- control flow


def test_a_loop_counts_as_often_as_it_runs() -> None:
    def f(w: Any, xs: Any) -> Any:
        return wl.scan(lambda h, x: (wl.tanh(h @ w + x), None), xs[0], xs)[0]

    told = wl.explain(f, wl.ones((4, 4)), wl.ones((7, 2, 4)))
    line = step_of(told, "matmul (2, 4) @ (4, 4)")
    assert [block.text for block in line.blocks] == ["loop x 7"]
    assert line.times == 7
    assert line.multiply_adds == 7 * (2 * 4 * 4 + 2 * 2 * 4)  # the product, and add and tanh of its elements
    rows = str(told).splitlines()
    at = next(i for i, row in enumerate(rows) if "loop x 7" in row)
    indent = rows[at].index("loop")
    assert rows[at + 1].index("matmul") == indent + 2


def test_how_often_a_while_loop_runs_is_not_known() -> None:
    def f(x: Any) -> Any:
        return wl.while_loop(lambda s: s.sum() < 100.0, lambda s: s * 2.0, x)

    told = wl.explain(f, wl.ones(3), profile=True)
    line = next(line for line in told.steps if "multiply" in line.what)
    assert line.blocks[0].text == "while loop"
    assert line.times is line.rate is None
    assert line.seconds is not None
    assert "while loop" in str(told)


def test_the_cases_of_a_branch() -> None:
    def f(p: Any, x: Any) -> Any:
        return wl.cond(p, lambda x: wl.sin(x), lambda x: wl.cos(x), x)

    told = wl.explain(f, wl.tensor(True), wl.ones(3))
    found = {line.what: [block.text for block in line.blocks] for line in told.steps if line.blocks}
    assert sorted(blocks[-1] for blocks in found.values()) == ["case 0", "case 1"]
    assert all(blocks[0] == "branch" for blocks in found.values())


# --- training steps


def training() -> tuple[Any, tuple[Any, ...]]:
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))
    optimizer = wl.optim.Adam(model, lr=1e-2)

    @wl.jit
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    return step, (model, optimizer, wl.ones((10, 6)), wl.zeros((10, 1)))


def test_the_program_of_a_training_step_is_the_one_that_runs() -> None:
    step, args = training()
    with wl.using_backend("native"):
        step(*args)
        told = wl.explain(step, *args)
        graph = step._find(args, {})[0].graph
    assert told.program is graph.programs["native"]
    states = len(graph.states)
    assert states > 4  # of two layers and of Adam
    assert f"{len(told.program.donations)} of {states} new states take the place of the old ones" in str(told)
    assert any(line.where == "0 (Linear)" for line in told.steps)
    assert any(line.where == "0 (Linear), backward" for line in told.steps)
    assert any(line.where.startswith("test_explain.py:") for line in told.steps)


def test_profiling_changes_nothing_and_explaining_first_does_not_either() -> None:
    def run(look: bool) -> list[Any]:
        wl.random.seed(0)
        step, args = training()
        before = [np.array(leaf) for leaf in wl.tree.leaves(args[0])]
        with wl.using_backend("native"):
            if look:
                told = wl.explain(step, *args, profile=True)
                assert len(told.program.donations) > 0
                for leaf, old in zip(wl.tree.leaves(args[0]), before, strict=True):
                    np.testing.assert_array_equal(np.asarray(leaf), old)
            losses = [float(step(*args)) for _ in range(3)]
        return [losses, *[np.asarray(leaf) for leaf in wl.tree.leaves(args[0])]]

    for x, y in zip(run(False), run(True), strict=True):
        np.testing.assert_array_equal(x, y)


class Scaled:
    @wl.jit
    def doubled(self, x: Any) -> Any:
        return 2 * x


def test_functions_of_all_kinds() -> None:
    x = wl.ones(5)
    for f in (wl.jit(lambda x: 2 * x), lambda x: 2 * x, Scaled().doubled, wl.grad(lambda x: (x * x).sum())):
        assert [line.kind for line in wl.explain(f, x).steps] == ["kernel"]
    assert wl.explain(lambda x: 2 * x, wl.ShapeDtype((5,), wl.float32)).bytes == 2 * 5 * F
    with pytest.raises(wl.errors.InputError, match="ShapeDtype"):
        wl.explain(lambda x: 2 * x, wl.ShapeDtype((5,), wl.float32), profile=True)


# --- memory


def test_the_memory_plan() -> None:
    """Of four products in a row, each is needed for the next one only: two places are enough."""

    def f(x: Any) -> Any:
        for _ in range(5):
            x = x @ x
        return x

    told = wl.explain(f, wl.ones((32, 32)))
    assert told.buffer_bytes == 4 * F * 32 * 32
    assert told.arena_bytes == 2 * F * 32 * 32
    assert f"an arena of {told.arena_bytes:,} bytes for {told.buffer_bytes:,} of intermediate values" in str(told)


# --- time


def test_profile() -> None:
    told = wl.explain(lambda x: wl.tanh(x @ x).sum(axis=0), wl.ones((128, 128)), profile=True)
    assert told.times is not None
    assert all(line.seconds is not None and line.seconds > 0 for line in told.steps)
    assert told.seconds <= told.times.seconds
    product = step_of(told, "matmul")
    assert product.share == pytest.approx(product.least / product.seconds)
    assert 0.0 < product.share < 4  # the bounds are measured, too, and on a busy machine they are too low
    assert product.rate == pytest.approx(product.multiply_adds / product.seconds)
    assert "GFLOP/s on one thread" in str(told)
    head, row = str(told).splitlines()[1:3]
    assert head.split()[-7:] == ["time", "%", "GFLOP/s", "GB/s", "of", "the", "bound"]
    assert product.bound in row.split()
    assert row.endswith("%")


def test_calls_into_numpy_are_timed() -> None:
    told = wl.explain(lambda x: wl.linalg.svd(x, full_matrices=False)[1], wl.ones((30, 30)), profile=True)
    line = step_of(told, "NumPy")
    assert line.seconds is not None
    assert line.seconds > 1e-6


# --- bounds

FAST = Limits(1e9, 2e9, (1e12, 2e12), (1e12, 2e12), (1e12, 2e12), (1e-12, 1e-12))  # but for arithmetic
NARROW = Limits(1e15, 2e15, (1e9, 2e9), (1e9, 2e9), (1e9, 2e9), (1e-12, 1e-12))  # but for memory
SLOW = Limits(1e15, 2e15, (1e15, 2e15), (1e15, 2e15), (1e15, 2e15), (1e-6, 3e-6))  # but for starting a step


@pytest.fixture
def machine_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Limits], None]:
    return lambda chosen: monkeypatch.setattr(explaining, "limits", lambda: chosen)


def test_a_product_is_bound_by_what_the_machine_lacks(machine_of: Callable[[Limits], None]) -> None:
    args = wl.ones((8, 4)), wl.ones((4, 16))  # 512 multiply-adds, of (32 + 64 + 128) numbers, in one chunk
    for limits, bound, least in [
        (FAST, "compute", 512e-9),
        (NARROW, "memory", 224 * F * 1e-9),
        (SLOW, "overhead", 1e-6),
    ]:
        machine_of(limits)
        told = wl.explain(lambda x, w: x @ w, *args)
        (line,) = told.steps
        assert (line.bound, line.chunks) == (bound, 1)
        assert line.least == pytest.approx(least)
        assert line.share is None  # nothing was measured
        assert told.bounds == {bound: line.least}
        assert bound in str(told).splitlines()[2].split()


def test_double_precision_takes_twice_as_long(machine_of: Callable[[Limits], None]) -> None:
    machine_of(FAST)
    (line,) = wl.explain(lambda x, w: x @ w, *(wl.ones(s, dtype=wl.float64) for s in ((8, 4), (4, 16)))).steps
    assert line.least == pytest.approx(2 * 512e-9)


def test_what_threads_share_has_the_rates_of_all(machine_of: Callable[[Limits], None]) -> None:
    machine_of(NARROW)
    (line,) = wl.explain(lambda x: x + 1, wl.ones(1 << 20)).steps
    assert line.chunks > 1
    assert line.least == pytest.approx(2 * F * 2**20 / 2e9)


def test_what_is_dear_counts_as_the_additions_that_it_takes(machine_of: Callable[[Limits], None]) -> None:
    machine_of(FAST)
    x = wl.ones((10, 10))
    plain, dear = (wl.explain(f, x).steps[0] for f in (lambda x: x * x, wl.exp))
    assert plain.effort == plain.multiply_adds == 100
    assert dear.multiply_adds == 100
    assert dear.effort > 4 * 100
    assert dear.least == pytest.approx(dear.effort * 1e-9)


def test_steps_of_a_loop_are_started_in_every_turn(machine_of: Callable[[Limits], None]) -> None:
    machine_of(SLOW)
    told = wl.explain(lambda h, xs: wl.scan(lambda h, x: (h * x, None), h, xs)[0], wl.ones(4), wl.ones((7, 4)))
    inside = [line for line in told.steps if line.blocks]
    assert [line.least for line in inside] == [pytest.approx(7e-6)] * len(inside)
    assert inside


def test_bytes_come_from_the_cache_that_they_fit_in() -> None:
    _, second, last = of_this_machine()
    assert 0 < second <= last
    limits = FAST._replace(near=(3.0, 6.0), between=(2.0, 4.0), far=(1.0, 2.0))
    assert [limits.bandwidth(n, False) for n in (second, second + 1, last, last + 1)] == [3, 2, 2, 1]
    assert limits.bandwidth(second, True) == 6


def test_limits_are_measured_once_on_a_quiet_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("WONDERLAND_CACHE", str(tmp_path))
    monkeypatch.setattr(measuring, "_busy", lambda: False)
    measuring._limits.cache_clear()
    first = measuring.limits()
    assert first.one > 1e8
    assert first.of(wide=True) == first.all / 2
    assert all(rate > 1e8 for rates in (first.near, first.between, first.far) for rate in rates)
    assert all(0 < seconds < 1e-3 for seconds in first.start)
    measuring._limits.cache_clear()
    monkeypatch.setattr(measuring, "_rate", lambda pool, chunks: math.nan)
    assert measuring.limits() == first  # read from the disk
    measuring._limits.cache_clear()


def test_limits_of_a_busy_machine_are_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("WONDERLAND_CACHE", str(tmp_path))
    monkeypatch.setattr(measuring, "_busy", lambda: True)
    monkeypatch.setattr(measuring, "_measured", lambda threads: [float(threads)] * 10)
    measuring._limits.cache_clear()
    assert measuring.limits().near[0] == wl.get_threads()
    assert wl.cache.info().files == 0
    measuring._limits.cache_clear()


# --- code and picture


def test_the_code_of_every_routine_is_there_once() -> None:
    told = wl.explain(lambda x, y, z: [(x @ y) @ y, wl.exp(z)], wl.ones((8, 8)), wl.ones((8, 8)), wl.ones(5))
    assert (len(told.steps), told.routines) == (3, 2)  # the two products are one routine
    assert told.llvm.count("define void @step_") == 2
    assert "; 0: matmul (8, 8) @ (8, 8)" in told.llvm
    assert told.assembly.count("# 0: matmul (8, 8) @ (8, 8)") == 1
    assert "ret" in told.assembly


@pytest.mark.parametrize("profile", [False, True])
def test_the_picture(profile: bool, tmp_path: Any) -> None:
    def f(w: Any, xs: Any) -> Any:
        h = wl.scan(lambda h, x: (wl.tanh(h @ w + x), h), xs[0], xs)
        return (h[0] @ w < 1) & (h[1].sum() > 0)

    told = wl.explain(f, wl.ones((4, 4)), wl.ones((7, 2, 4)), profile=profile)
    path = told.show(str(tmp_path / "steps.svg"))
    root = xml.etree.ElementTree.parse(path).getroot()
    rects = list(root.iter("{http://www.w3.org/2000/svg}rect"))
    bars = [e for e in rects if e.get("class") == "bar"]
    assert len(bars) == len(told.steps)
    assert len({e.get("y") for e in bars}) == len(bars)
    planned = [b for b in lifetimes(told.program.schedule) if b.kind in PLANNED]
    lives = [e for e in rects if e.get("class") == "life"]
    assert len(lives) == len(planned)
    right = max(float(e.get("x", 0)) + float(e.get("width", 0)) for e in lives)
    assert right <= float(root.get("width", 0))
    words = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "loop x 7" in words
    assert [word for word in words if word in ("compute", "memory", "overhead")] == [line.bound for line in told.steps]
    assert any("matmul (2, 4) @ (4, 4)" in (word or "") for word in words)


def test_without_a_path_the_browser_shows_the_picture(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = wl.explain(lambda x: x + 1, wl.ones(3)).show()
    assert shown == [f"file://{path}"]
