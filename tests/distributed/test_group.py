"""Sums over processes: their order, their bits, and what is told when one fails. Threads stand for processes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import wonderland as wl
from wonderland.core.settings import setting
from wonderland.distributed import group as groups
from wonderland.distributed.agreement import agree
from wonderland.distributed.group import Group
from wonderland.distributed.sums import summed, weighted_mean
from wonderland.errors import FileError, ProcessError


class Threads:
    """A transport between threads of one process."""

    def __init__(self, size: int) -> None:
        self.size, self.slots = size, [None] * size
        self.barrier = threading.Barrier(size, timeout=20)

    def all(self, rank, value):
        self.slots[rank] = np.array(value)  # a program goes on writing to its memory
        self.barrier.wait()
        found = list(self.slots)
        self.barrier.wait()
        return found


class Mine:
    def __init__(self, threads: Threads, rank: int) -> None:
        self.threads, self.rank = threads, rank

    def exchange(self, rows):
        return np.stack([other[self.rank] for other in self.threads.all(self.rank, rows)])

    def gather(self, row):
        return np.stack(self.threads.all(self.rank, row))

    def close(self) -> None:
        pass


def run(size, f):
    """What f(group) gives in each of some threads; an exception stands for its result."""
    threads, found = Threads(size), [None] * size

    def work(rank):
        try:
            found[rank] = f(Group(rank, size, Mine(threads, rank)))
        except Exception as error:
            found[rank] = error

    started = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(30)
    return found


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (33, 3), (0, 4), (5, 1000), (100_003,)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64", "float16", "bfloat16"])
def test_sums_are_made_in_the_order_of_ranks(size, shape, dtype):
    rng = np.random.default_rng(size)
    kind = np.dtype(wl.zeros((), dtype=dtype).dtype)
    parts = [(rng.normal(size=shape) * 10 ** rng.uniform(-3, 3, shape)).astype(kind) for _ in range(size)]
    wide = np.float32 if kind.itemsize == 2 else kind
    wanted = parts[0].astype(wide)
    for part in parts[1:]:
        wanted = wanted + part.astype(wide)
    wanted = np.asarray(wanted).astype(kind)
    for found in run(size, lambda group: group.sum(parts[group.rank])):
        assert found.dtype == kind
        assert found.shape == shape
        assert found.tobytes() == wanted.tobytes()


def test_large_sums_have_the_bits_of_small_ones(monkeypatch):
    parts = np.random.default_rng(0).normal(size=(3, 1001)).astype(np.float32)
    first = run(3, lambda group: group.sum(parts[group.rank]))
    monkeypatch.setattr(groups, "SMALL", 0)
    assert all(np.array_equal(a, b) for a, b in zip(first, run(3, lambda g: g.sum(parts[g.rank])), strict=True))


def test_bytes_of_any_length():
    assert run(3, lambda group: group.gather_bytes(b"x" * group.rank))[1] == [b"", b"x", b"xx"]
    assert run(2, lambda group: group.gather({"rank": group.rank}))[0] == [{"rank": 0}, {"rank": 1}]


def test_an_error_of_the_first_is_told_to_all():
    def work(group):
        def write():
            raise FileError("cannot write x: the disk is full.", "another disk")

        return group.by_first("save", write)

    first, second = run(2, work)
    assert isinstance(first, FileError)
    assert isinstance(second, ProcessError)
    assert "process 0" in str(second)
    assert "the disk is full" in str(second)


def test_what_differs_is_named_in_all_processes():
    found = run(3, lambda group: agree(group, "fit", {"the seed": 1, "the lr": 0.1 if group.rank == 2 else 0.2}))
    assert all(isinstance(error, ProcessError) for error in found)
    assert len({str(error).splitlines()[0] for error in found}) == 1
    assert all(word in str(found[0]) for word in ("the lr", "0.2", "0.1", "process 2"))
    assert run(2, lambda group: agree(group, "fit", {"the seed": 1})) == [None, None]


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("compiled", [False, True])
def test_sums_inside_programs_and_their_derivatives(engine, compiled):
    x = np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32)

    def work(group):
        def f(v):
            (total,) = summed(group, [v * v])
            return (total * wl.tensor(x[group.rank])).sum()

        with wl.using_backend(engine):
            both = wl.value_and_grad(f)
            return (wl.jit(both) if compiled else both)(wl.tensor(x[group.rank]))

    total = (x * x).sum(0)
    for rank, (value, grad) in enumerate(run(2, work)):
        np.testing.assert_allclose(float(value), (total * x[rank]).sum(), rtol=1e-5)
        # of the sum over processes of what each computes
        np.testing.assert_allclose(np.asarray(grad), 2 * x[rank] * x.sum(0), rtol=1e-5)


def test_a_sum_that_nobody_reads_is_made_all_the_same():
    """Or the processes would not meet in the same order."""
    met = []

    class Counting(Group):
        def sum(self, x):
            met.append(x.shape)
            return x

    group = Counting(0, 2)

    @wl.jit
    def f(x):
        summed(group, [x])
        (a,), (b,) = summed(group, [x]), summed(group, [x])
        return a + b

    f(wl.ones(3)), f(wl.ones(3))
    assert met == [(3,)] * 6


def test_weighted_means():
    values = np.array([[1.0, 2.0], [5.0, 4.0]])

    def work(group):
        leaves = [wl.tensor(values[group.rank], dtype=kind) for kind in ("float64", "float32", "bfloat16")]
        means, count = weighted_mean(group, leaves, [3.0, 1.0][group.rank])
        return [str(m.dtype) for m in means], [np.asarray(m, np.float64) for m in means], float(count)

    for kinds, means, count in run(2, work):
        assert kinds == ["float64", "float32", "bfloat16"]
        assert count == 4
        assert all(np.array_equal(m, [2.0, 2.5]) for m in means)


def test_batch_norm_over_parts_is_that_of_the_whole():
    x = np.random.default_rng(2).normal(size=(8, 5, 3)).astype(np.float32)
    y = np.random.default_rng(3).normal(size=(8, 5, 3)).astype(np.float32)

    def loss(layer, a, b):
        return ((layer(a) - b) ** 2).mean()

    whole = wl.nn.BatchNorm1d(3)
    value, grads = wl.value_and_grad(loss)(whole, wl.tensor(x), wl.tensor(y))

    def work(group):
        layer, rows = wl.nn.BatchNorm1d(3), slice(0, 3) if group.rank == 0 else slice(3, 8)
        weight = (rows.stop - rows.start) / 8
        with setting("group", group):
            share = lambda m, a, b: loss(m, a, b) * weight
            found, own = wl.jit(wl.value_and_grad(share, (0, 1)))(layer, wl.tensor(x[rows]), wl.tensor(y[rows]))
        return summed(group, [found, *own[0].values()]), np.asarray(own[1]), layer.running_var.value

    parts = run(2, work)
    of_inputs = wl.grad(lambda a: loss(wl.nn.BatchNorm1d(3), a, wl.tensor(y)))(wl.tensor(x))
    np.testing.assert_allclose(np.concatenate([p[1] for p in parts]), np.asarray(of_inputs), atol=1e-6)
    for sums, _, variance in parts:
        np.testing.assert_allclose(float(sums[0]), float(value), rtol=1e-5)
        for found, wanted in zip(sums[1:], grads.values(), strict=True):
            np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), atol=1e-6)
        np.testing.assert_allclose(np.asarray(variance), np.asarray(whole.running_var.value), rtol=1e-5)
