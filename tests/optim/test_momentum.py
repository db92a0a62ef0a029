"""Momentum: both conventions, the point ahead, and what it is good for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim


def one(value=1.0):
    return nn.Parameter(value, wl.float64)


def square(p):
    return (p[0] ** 2).sum()


def descend(optimizer, w, rates, f=square):
    seen = []
    for rate in rates:
        optimizer.lr = rate
        optimizer.step(wl.grad(f)([w]))
        seen.append(w.item())
    return seen


@pytest.mark.book("2.71", "A3-44", name="wl.optim.HeavyBall")
def test_the_book_has_the_rate_inside():
    w = one()
    np.testing.assert_allclose(descend(optim.HeavyBall([w], momentum=0.9), w, [0.1] * 3), [0.8, 0.46, 0.062])
    a, b = one(), one()
    assert descend(optim.HeavyBall([a], momentum=0.0), a, [0.1] * 5) == descend(optim.SGD([b]), b, [0.1] * 5)


@pytest.mark.book("2.71", "C-08", name=("wl.optim.HeavyBall", "wl.optim.SGD"))
def test_the_two_conventions_differ_when_the_rate_changes():
    a, b = one(), one()
    inside, outside = optim.HeavyBall([a], momentum=0.9), optim.SGD([b], momentum=0.9)
    np.testing.assert_allclose(descend(inside, a, [0.1] * 6), descend(outside, b, [0.1] * 6), rtol=1e-12)
    a, b = one(), one()
    inside, outside = optim.HeavyBall([a], momentum=0.9), optim.SGD([b], momentum=0.9)
    rates = [0.1, 0.01]
    # by hand: g1 = 2, g2 = 1.6; inside 0.9 * (-0.1 * 2) - 0.01 * 1.6, outside -0.01 * (0.9 * 2 + 1.6)
    np.testing.assert_allclose(descend(inside, a, rates), [0.8, 0.8 - 0.18 - 0.016])
    np.testing.assert_allclose(descend(outside, b, rates), [0.8, 0.8 - 0.034])


@pytest.mark.book("2.72", "B2-21", name="wl.optim.HeavyBall")
def test_unrolled_old_gradients_keep_their_own_rates():
    rates, gradients, decay = [0.1, 0.03, 0.2, 0.07], [1.0, -2.0, 0.5, 3.0], 0.8
    w = one(0.0)
    optimizer = optim.HeavyBall([w], momentum=decay)
    for rate, g in zip(rates, gradients, strict=True):
        before = w.item()
        optimizer.lr = rate
        optimizer.step([wl.tensor(g, wl.float64)])
    terms = [-(decay**n) * rates[3 - n] * gradients[3 - n] for n in range(4)]
    np.testing.assert_allclose(w.item() - before, sum(terms))


@pytest.mark.book("A3-45", name="wl.optim.Optimizer.effective_lr")
@pytest.mark.parametrize("make", [optim.SGD, optim.HeavyBall])
def test_a_constant_gradient_reaches_the_effective_rate(make):
    w = one()
    optimizer = make([w], lr=0.1, momentum=0.9)
    np.testing.assert_allclose(optimizer.effective_lr()["0"].item(), 1.0)
    steps = descend(optimizer, w, [0.1] * 200, lambda p: p[0].sum())
    np.testing.assert_allclose(steps[-1] - steps[-2], -1.0, rtol=1e-8)


@pytest.mark.book("A3-46", "A3-47", name="wl.optim.Nesterov")
@pytest.mark.parametrize("compiled", [False, True])
def test_nesterov_takes_the_gradient_ahead(compiled):
    w = one()
    optimizer = optim.Nesterov([w], lr=0.1, momentum=0.9)

    def step(w, optimizer):
        with optimizer.ahead():
            grads = wl.grad(square)([w])
        optimizer.step(grads)

    run = wl.jit(step) if compiled else step
    seen = []
    for _ in range(3):
        run(w, optimizer)
        seen.append(w.item())
    np.testing.assert_allclose(seen, [0.8, 0.496, 0.17792])


def test_the_point_ahead_is_left_after_an_error():
    w = one()
    optimizer = optim.Nesterov([w], lr=0.1)
    optimizer.step([wl.tensor(1.0, wl.float64)])
    before = w.item()

    def fail():
        with optimizer.ahead():
            assert w.item() != before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert w.item() == before


@pytest.mark.book("A3-48", name="wl.optim.Nesterov")
def test_nesterov_on_a_convex_function_falls_like_one_over_t_squared():
    # a spread of small eigenvalues, so that neither method reaches its linear phase
    eigenvalues = 1.0 / np.arange(1, 401) ** 2
    x = np.sqrt(eigenvalues)

    def values(accelerated, marks):
        w = nn.Parameter(x)
        optimizer = optim.Nesterov([w], lr=1.0, momentum=0.0)
        seen = []
        for t in range(marks[-1]):
            if accelerated:
                optimizer.groups[0]["momentum"] = t / (t + 3)
            with optimizer.ahead():
                g = wl.asarray(eigenvalues) * (w.value - 1.0)
            optimizer.step([g])
            if t + 1 in marks:
                seen.append(float(0.5 * (eigenvalues * (w.numpy() - 1.0) ** 2).sum()))
        return seen

    marks = [50, 200]
    plain, fast = values(False, marks), values(True, marks)
    slope_plain, slope_fast = (np.log(v[1] / v[0]) / np.log(4) for v in (plain, fast))
    assert slope_fast < slope_plain - 0.4
    assert fast[1] < plain[1] / 5
    # the bound 2 L |x0 - x*|^2 / (t + 1)^2
    assert all(f <= 2 * ((x - 1) ** 2).sum() / (t + 1) ** 2 for f, t in zip(fast, marks, strict=True))


@pytest.mark.book("A3-50", name="wl.optim.HeavyBall")
def test_momentum_needs_fewer_steps_in_a_narrow_valley():
    def steps(make, **settings):
        result = optim.minimize(
            lambda x: (wl.tensor([1.0, 100.0], wl.float64) * x**2).sum() / 2,
            [1.0, 1.0],
            make,
            tol=1e-6,
            max_iter=3000,
            **settings,
        )
        assert result.converged
        return result.steps

    root = 10.0  # of the condition number 100, with the best constants of both methods
    plain = steps("gd", lr=2 / 101)
    ball = steps("momentum", lr=4 / (root + 1) ** 2, momentum=((root - 1) / (root + 1)) ** 2)
    assert ball < plain / 4


@pytest.mark.book("A3-49", "2.78", name=("wl.optim.Optimizer.state_size", "wl.optim.Optimizer.state_bytes"))
def test_memory_of_the_rules():
    model = nn.Linear(10, 4)
    n = model.num_parameters()
    sizes = {
        optim.SGD: 0,
        optim.HeavyBall: 1,
        optim.Adagrad: 1,
        optim.Lion: 1,
        optim.RMSprop: 1,
        optim.Adam: 2,
        optim.Adamax: 2,
        optim.Adadelta: 2,
    }
    for make, times in sizes.items():
        assert make(model).state_size() == times * n
        assert make(model).state_bytes() == 4 * times * n
    assert optim.Adam(model, amsgrad=True).state_size() == 3 * n
    assert optim.SGD(model, momentum=0.9).state_size() == n
    assert optim.SGD(model.astype(wl.float64), momentum=0.9).state_bytes() == 8 * n


@pytest.mark.book("2.77", name="wl.optim.Optimizer.param_groups")
def test_hyper_parameters_are_not_parameters():
    model = nn.Linear(2, 2)
    optimizer = optim.SGD(model, lr=0.1, momentum=0.9)
    assert {id(p) for p in optimizer.parameters()} == {id(p) for p in model.parameters()}
    assert optimizer.param_groups[0]["momentum"] == 0.9
    assert optimizer.state_dict()["lr"].item() == 0.1


def test_bad_settings():
    for make, bad in itertools.product((optim.HeavyBall, optim.Nesterov), (-0.1, 1.0, "fast")):
        with pytest.raises(wl.errors.InputError, match="momentum="):
            make([one()], momentum=bad)
