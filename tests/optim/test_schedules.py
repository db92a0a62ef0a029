"""Schedules against their formulas, traced, and with bad input."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim
from wonderland.errors import InputError
from wonderland.optim import schedules

ALL = {
    "step": schedules.step(1.0, 4, 0.5),
    "multi_step": schedules.multi_step(1.0, [3, 8, 9], 0.1),
    "exponential": schedules.exponential(1.0, 0.9),
    "linear": schedules.linear(0.25, 0.75, 10),
    "polynomial": schedules.polynomial(1.0, 12, 2.0),
    "cosine": schedules.cosine(1.0, 20, 0.1),
    "cosine_restarts": schedules.cosine_restarts(1.0, 3, 2, 0.1),
    "one_cycle": schedules.one_cycle(2.0, 20),
    "one_cycle_linear": schedules.one_cycle(2.0, 20, anneal_strategy="linear"),
    "cyclic": schedules.cyclic(0.1, 1.0, 4),
    "cyclic2": schedules.cyclic(0.1, 1.0, 3, 5, mode="triangular2"),
    "cyclic_exp": schedules.cyclic(0.1, 1.0, 4, mode="exp_range", gamma=0.9),
    "constant": schedules.constant(0.3),
    "inverse_sqrt": schedules.inverse_sqrt(1.0, 4),
    "warmup": schedules.warmup(5, schedules.cosine(1.0, 10)),
    "join": schedules.join([schedules.exponential(1.0, 0.5), schedules.linear(2.0, 1.0, 4)], [3]),
    "piecewise": schedules.piecewise([3, 9], [0.1, 0.5, 0.2]),
    "restarts": schedules.cosine_restarts(1.0, 4),
}


@pytest.mark.parametrize("name", ALL)
def test_a_traced_step_gives_the_same_rates(name):
    rate = ALL[name]
    traced = wl.jit(lambda t: rate(t))
    expected = [rate(t) for t in range(0, 25, 3)]
    found = [traced(wl.tensor(t)).item() for t in range(0, 25, 3)]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    assert traced.traces == 1


def test_a_metric_that_is_no_number_is_not_better():
    rate = optim.Plateau(1.0, factor=0.5, patience=0)
    assert [rate.step(m) for m in (2.0, float("nan"), 1.0)] == [1.0, 0.5, 0.5]
    assert rate.best == 1.0


def test_warmup_meets_the_schedule_that_follows():
    rate = schedules.warmup(4, schedules.cosine(0.8, 6, end=0.2), start=0.4)
    np.testing.assert_allclose([rate(t) for t in range(5)], [0.4, 0.5, 0.6, 0.7, 0.8])
    np.testing.assert_allclose([rate(t) for t in (7, 10, 99)], [0.5, 0.2, 0.2])
    assert schedules.warmup(0, schedules.constant(0.1))(0) == 0.1


def test_plain_functions_join():
    rate = schedules.join([lambda t: 1.0 + t, lambda t: 10.0 * t], [3])
    assert [rate(t) for t in range(5)] == [1.0, 2.0, 3.0, 0.0, 10.0]


@pytest.mark.book("A3-42", name="wl.optim.schedules")
def test_a_rate_in_a_compiled_step():
    w = nn.Parameter(0.0, wl.float64)
    optimizer = optim.SGD([w], lr=0.0)
    rate = schedules.step(1.0, 2, 0.1)

    @wl.jit
    def step(w, optimizer):
        optimizer.lr = rate(optimizer.count)
        optimizer.step([wl.tensor(-1.0, wl.float64)])

    for _ in range(4):
        step(w, optimizer)
    np.testing.assert_allclose(w.item(), 1.0 + 1.0 + 0.1 + 0.1)
    assert step.traces == 1


@pytest.mark.book("A3-43", name="wl.optim.schedules.batch_sizes")
def test_growing_batches_take_fewer_updates_for_the_same_loss():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 4))
    y = x @ rng.normal(size=4) + 0.5 * rng.normal(size=256)
    best = ((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2).mean()
    epochs, falling = 9, schedules.step(0.1, 3, 0.25)

    def run(rate, size):
        w, order, updates = np.zeros(4), np.random.default_rng(1), 0
        for epoch in range(epochs):
            b = size(epoch)
            shuffled = order.permutation(256)
            for start in range(0, 256, b):
                part = shuffled[start : start + b]
                w -= rate(epoch) * 2 * x[part].T @ (x[part] @ w - y[part]) / len(part)
                updates += 1
        return ((y - x @ w) ** 2).mean(), updates

    decayed, many = run(falling, lambda epoch: 8)
    sizes = schedules.batch_sizes(falling, 8, largest=128)
    grown, few = run(lambda epoch: 0.1, sizes)
    assert [sizes(epoch) for epoch in (0, 3, 6)] == [8, 32, 128]
    assert (many, few) == (9 * 32, 3 * (32 + 8 + 2))
    assert abs(grown - decayed) < 0.02 * best
    assert decayed < 1.05 * best


@pytest.mark.book("A3-43b", name="wl.optim.schedules.changes")
def test_the_steps_at_which_a_rate_changes():
    assert schedules.changes(schedules.step(1.0, 30), 100) == [30, 60, 90]
    assert schedules.changes(schedules.constant(1.0), 100) == []
    assert schedules.changes(schedules.batch_sizes(schedules.multi_step(1.0, [2, 5], 0.5), 4), 8) == [2, 5]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: schedules.constant(-0.1), "lr=-0.1"),
        (lambda: schedules.constant(float("nan")), "lr=nan"),
        (lambda: schedules.constant("high"), "is not a real number"),  # type: ignore[arg-type]
        (lambda: schedules.step(0.1, 0), "step_size=0 is too small"),
        (lambda: schedules.cosine(0.1, 0), "total_steps=0"),
        (lambda: schedules.join([schedules.constant(1.0)], [3]), "1 schedules and 1 boundaries"),
        (lambda: schedules.join([schedules.constant(1.0)] * 3, [5, 3]), "do not rise"),
        (lambda: schedules.piecewise([1, 2], [0.1]), "1 schedules and 2 boundaries"),
        (lambda: schedules.one_cycle(1.0, 10, pct_start=1.5), "pct_start=1.5"),
        (lambda: schedules.one_cycle(1.0, 10, anneal_strategy="sin"), "anneal_strategy='sin'"),
        (lambda: schedules.cyclic(0.1, 1.0, mode="square"), "mode='square'"),
        (lambda: schedules.cosine(0.1, 10)(-1), "the step -1"),
        (lambda: schedules.batch_sizes(schedules.constant(0.0), 8), "begins with 0.0"),
        (lambda: schedules.batch_sizes(schedules.linear(1.0, 0.0, 5), 8)(5), "the rate is 0.0"),
        (lambda: optim.Plateau(0.1, mode="least"), "mode='least'"),
        (lambda: optim.Plateau(0.1, factor=1.0), "factor=1.0"),
        (lambda: optim.Plateau(0.1).load_state_dict({"lr": 1.0}), "a state with"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=message):
        make()
