"""Solutions of differential equations: closed forms, SciPy, orders of convergence, derivatives, states of any kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import wonderland as wl
from wonderland.errors import DTypeError, GradientError, InputError, ShapeError, TreeError
from wonderland.ode import METHODS, odeint

F64 = wl.float64
ONE = wl.tensor(1.0, dtype=F64)


def decay(x, t):
    return -x


def pendulum(x, t):
    """Damped, and pushed from outside."""
    return wl.stack([x[1], -wl.sin(x[0]) - 0.1 * x[1] + 0.5 * wl.cos(2 * t)])


def numpy_pendulum(t, x):
    return [x[1], -np.sin(x[0]) - 0.1 * x[1] + 0.5 * np.cos(2 * t)]


START = wl.tensor([1.0, 0.5], dtype=F64)


@pytest.mark.book("9-94", "9-95", name="wl.ode.odeint")
@pytest.mark.parametrize("method, steps", [("dopri5", None), ("bosh3", None), ("rk4", 50), ("dopri5", 10)])
def test_the_integral_of_minus_x_is_an_exponential(method, steps):
    found = odeint(decay, ONE, 1.0, method, steps=steps, rtol=1e-9, atol=1e-10)
    assert found.item() == pytest.approx(0.36787944117, abs=1e-8)
    assert odeint(decay, 1.0, 1.0).dtype == wl.float32  # a Python number is one of the default dtype


@pytest.mark.book("9-96", name="wl.ode.odeint")
def test_eulers_method():
    assert odeint(decay, ONE, 1.0, "euler", steps=10).item() == pytest.approx(0.3486784401, abs=1e-12)  # 0.9^10
    errors = [abs(odeint(decay, ONE, 1.0, "euler", steps=n).item() - math.exp(-1)) for n in (10, 20, 40)]
    np.testing.assert_allclose(errors, [0.0192, 0.0094, 0.0046], atol=5e-5)
    # the slope is taken at the time before the step, not after it: the left sum of the integral of t
    assert odeint(lambda x, t: t, 0 * ONE, 1.0, "euler", steps=4).item() == (0.0 + 0.25 + 0.5 + 0.75) / 4


@pytest.mark.book("9-98", name=("wl.ode.odeint", "wl.ode.METHODS"))
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_convergence(method):
    exact = solve_ivp(numpy_pendulum, (0, 2), START.numpy(), rtol=1e-12, atol=1e-13).y[:, -1]
    errors = [np.abs(odeint(pendulum, START, 2.0, method, steps=n).numpy() - exact).max() for n in (16, 32)]
    assert -0.25 < math.log2(errors[0] / errors[1]) - METHODS[method].order < 0.8


@pytest.mark.parametrize("method", METHODS)
def test_tables_fulfil_the_conditions_of_their_order(method):
    table = METHODS[method]
    b, c = np.array(table.b), np.array(table.c)
    for power in range(table.order):
        assert b @ c**power == pytest.approx(1 / (power + 1), abs=1e-14)
    if table.error is not None:
        embedded = b - np.array(table.error)
        for power in range(table.order - 1):
            assert embedded @ c**power == pytest.approx(1 / (power + 1), abs=1e-14)
        assert abs(embedded @ c ** (table.order - 1) - 1 / table.order) > 1e-4
        assert table.a[-1] == table.b[:-1]  # the last slope of a step is the first of the next


@pytest.mark.book("9-98", name="wl.ode.odeint")
def test_adaptive_steps_agree_with_scipy():
    calls = []
    times = [0.0, 3.0, 10.0]
    f = lambda x, t: (calls.append(1), pendulum(x, t))[1]
    found = odeint(f, START, times, rtol=1e-6, atol=1e-9)
    exact = solve_ivp(numpy_pendulum, (0, 10), START.numpy(), t_eval=times, rtol=1e-12, atol=1e-13).y.T
    peer = solve_ivp(numpy_pendulum, (0, 10), START.numpy(), t_eval=times, rtol=1e-6, atol=1e-9)
    assert np.abs(found - exact).max() < 3 * max(np.abs(peer.y.T - exact).max(), 1e-6)
    assert len(calls) < 1.2 * peer.nfev  # not by taking many more steps
    np.testing.assert_array_equal(found[0], START)
    looser = odeint(pendulum, START, times, rtol=1e-3, atol=1e-5)
    assert 1e-5 < np.abs(looser - exact).max() < 2e-2
    compiled = wl.jit(lambda x: odeint(pendulum, x, times, rtol=1e-6, atol=1e-9))
    np.testing.assert_allclose(compiled(START), found, rtol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"method": "rk4", "steps": 40}])
def test_backwards_in_time_and_back(settings):
    times = wl.tensor([2.0, 0.5, 0.0], dtype=F64)
    there = odeint(pendulum, START, times, **settings)
    back = odeint(pendulum, there[-1], times[::-1], **settings)
    np.testing.assert_allclose(back, there[::-1], atol=2e-4)
    assert odeint(pendulum, START, [1.0], **settings).shape == (1, 2)  # nothing to do


def test_a_state_may_be_a_tree_and_args_reach_f():
    f = lambda state, t, rate: {"x": state["v"], "v": -rate * state["x"]}
    state = {"x": wl.ones((2, 3), dtype=F64), "v": wl.zeros((2, 3), dtype=F64)}
    found = odeint(f, state, [0.0, 1.0], args=(4.0,), rtol=1e-8, atol=1e-9)
    assert found["x"].shape == (2, 2, 3)
    np.testing.assert_allclose(found["x"][1], np.full((2, 3), math.cos(2.0)), rtol=1e-6)
    z = odeint(lambda z, t: 1j * z, wl.tensor(1.0 + 0j, dtype=wl.complex128), math.pi, rtol=1e-9, atol=1e-9)
    assert z.item() == pytest.approx(-1.0 + 0j, abs=1e-6)


def test_many_at_once():
    starts = wl.tensor([[1.0, 0.5], [2.0, -1.0]], dtype=F64)
    f = lambda x: odeint(pendulum, x, 1.0, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(wl.vmap(f)(starts), wl.stack([f(x) for x in starts]), atol=1e-7)


# --- derivatives


@pytest.mark.book("9-98", name="wl.ode.odeint")
@pytest.mark.parametrize(
    "settings", [{"method": "rk4", "steps": 3}, {"method": "euler"}, {"rtol": 1e-10, "atol": 1e-11}]
)
def test_derivatives_through_the_solver(settings):
    times = wl.tensor([0.3, 1.0, 1.5], dtype=F64)
    f = lambda x, t, w: w * pendulum(x, t)
    solve = lambda x, t, w: odeint(f, x, t, args=(w,), **settings)
    wl.check_grads(solve, (START, times, wl.tensor([1.0, 0.7], dtype=F64)), rtol=1e-5, atol=1e-6)
    gradient = wl.grad(lambda x: solve(x, times, ONE).sum())
    if "rtol" not in settings:
        np.testing.assert_allclose(wl.jit(gradient)(START), gradient(START), rtol=1e-12)


def test_reverse_mode_of_adaptive_steps_under_jit():
    loss = lambda x, **settings: (odeint(pendulum, x, 1.0, **settings) ** 2).sum()
    expected = wl.grad(loss)(START)
    bounded = wl.jit(wl.grad(lambda x: loss(x, bounded=True, max_steps=30)))
    np.testing.assert_allclose(bounded(START), expected, rtol=1e-9)
    with pytest.raises(GradientError, match=r"number of adaptive steps is not known[\s\S]*odeint_adjoint"):
        wl.jit(wl.grad(loss))(START)


# --- what cannot be solved


def test_an_integration_that_cannot_end_says_where_it_is():
    explodes = lambda x, t: x**2  # x = 1 / (1 - t)
    with pytest.raises(InputError, match=r"the integration is at t=(1|0\.9999)[\s\S]*grows without bound"):
        odeint(explodes, ONE, 2.0)
    with pytest.raises(InputError, match=r"after 7 steps[\s\S]*max_steps"):
        odeint(pendulum, START, 100.0, max_steps=7)
    with pytest.raises(InputError, match=r"at t=0, with a next step of nan"):
        odeint(lambda x, t: x * math.nan, ONE, 1.0)
    compiled = wl.jit(lambda x: odeint(explodes, x, 2.0, max_steps=200))
    assert math.isnan(compiled(ONE).item())  # under jit there is nobody to tell


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: odeint(decay, ONE, 1.0, "rk5"), InputError, "there is no method 'rk5'"),
        (lambda: odeint(decay, ONE, 1.0, "euler"), InputError, r"how many steps[\s\S]*steps=100"),
        (lambda: odeint(decay, ONE, 1.0, "euler", steps=0), InputError, "steps=0"),
        (lambda: odeint(decay, ONE, 1.0, rtol=-1.0), InputError, "rtol=-1"),
        (lambda: odeint(decay, ONE, 1.0, rtol=0, atol=0), InputError, "both 0"),
        (lambda: odeint(decay, ONE, 1.0, first_step=0), InputError, "first_step=0"),
        (lambda: odeint(decay, ONE, [0.0, 2.0, 1.0]), InputError, "neither rise nor fall"),
        (lambda: odeint(decay, ONE, []), ShapeError, r"times of shape \(0,\)"),
        (lambda: odeint(decay, ONE, wl.zeros((2, 2))), ShapeError, "times of shape"),
        (lambda: odeint(decay, ONE, 1j), DTypeError, "times of complex"),
        (lambda: odeint(decay, 1, 1.0), DTypeError, "cannot change smoothly"),
        (lambda: odeint(decay, "x", 1.0), TreeError, "no state"),
        (lambda: odeint(None, ONE, 1.0), InputError, "not a function"),  # type: ignore[arg-type]
        (lambda: odeint(lambda x, t: x[:1], START, 1.0), ShapeError, r"derivative of shape \(1,\) .* shape \(2,\)"),
        (lambda: odeint(lambda x, t: (x, x), START, 1.0), TreeError, "f gives"),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
