"""`wl.check_grads` finds wrong derivatives, and only those."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import GradientError, InputError, WonderlandError
from wonderland.inspect.checking import GradientCheckError, KinkWarning

rng = np.random.default_rng(0)


def f64(x: Any) -> wl.Tensor:
    return wl.asarray(np.asarray(x, np.float64))


SMOOTH = {
    "network": (lambda x, W: wl.tanh(x @ W).sum(axis=1), (rng.normal(size=(3, 4)), rng.normal(size=(4, 2)))),
    "softmax": (lambda x: wl.softmax(x), (rng.normal(size=(2, 5)),)),
    "tree": (
        lambda p: {"a": p["x"] ** 3, "b": [wl.exp(p["y"]), wl.arange(2)]},
        ({"x": 2.0, "y": rng.normal(size=3)},),
    ),
    "large values": (lambda x: 1e6 * wl.sin(x), (rng.normal(size=3),)),
    "steep": (lambda x: wl.exp(20 * x), (rng.normal(size=3) * 0.1,)),
    "complex": (
        lambda z: wl.abs(z) ** 2 + wl.real(wl.sin(z)),
        (rng.normal(size=3) + 1j * rng.normal(size=3),),
    ),
    "real to complex": (lambda x: wl.exp(1j * x), (rng.normal(size=3),)),
    "empty": (lambda x: x * 2, (np.ones((0, 2)),)),
    "constant": (lambda x: wl.ones(3), (np.ones(2),)),
}


@pytest.mark.book("6-21", "A3-08", name="wl.check_grads")
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", SMOOTH)
def test_right_derivatives_pass(name: str, order: int) -> None:
    f, args = SMOOTH[name]
    wl.check_grads(f, tuple(args), order=order)  # type: ignore[arg-type]


def test_one_argument_needs_no_tuple_and_modules_are_arguments() -> None:
    wl.check_grads(wl.sin, f64([1.0, 2.0]))
    x = wl.asarray(rng.normal(size=(4, 3)).astype(np.float32))
    model = nn.Linear(3, 2)
    wl.check_grads(lambda m, x: wl.tanh(m(x)).sum(), (model, x), order=2)
    assert all(p.dtype == wl.float32 for _, p in model.named_parameters())


def wrong_backward(factor: float) -> Any:
    """x^2 with a mistake in its VJP alone."""

    @wl.custom_vjp
    def f(x: wl.Tensor) -> wl.Tensor:
        return x**2

    f.defvjp(lambda x: (x**2, x), lambda x, ct: (ct * 2 * x * factor,))
    return f


@pytest.mark.book("6-21", name="wl.check_grads")
def test_a_wrong_vjp_is_found_and_named() -> None:
    wl.check_grads(wrong_backward(1.0), f64([1.0, 2.0]), modes=("reverse",))
    with pytest.raises(GradientCheckError, match=r"reverse mode is wrong at input 0\[\d\]"):
        wl.check_grads(wrong_backward(1.001), f64([1.0, 2.0]), modes=("reverse",))


def wrong_in_one_place(x: wl.Tensor) -> wl.Tensor:
    mask = wl.arange(x.size).reshape(x.shape) == 4
    return wl.where(mask, x * wl.stop_gradient(x), x**2)


def test_the_message_names_mode_element_and_numbers() -> None:
    x = f64(rng.normal(size=(2, 3)))
    with pytest.raises(GradientCheckError) as caught:
        wl.check_grads(lambda x: {"y": wrong_in_one_place(x)}, (x,), modes=("forward",))
    message = str(caught.value)
    assert "forward mode is wrong at output y[1, 1]" in message
    assert "test_checking.py" in message
    with pytest.raises(GradientCheckError, match=r"reverse mode is wrong at input 0\.w\[1, 1\]: .* by differences"):
        wl.check_grads(lambda p: wrong_in_one_place(p["w"]), ({"w": x},), modes=("reverse",))
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, WonderlandError)


def test_a_wrong_second_derivative_is_found() -> None:
    @wl.custom_jvp
    def f(x: wl.Tensor) -> wl.Tensor:
        return x**3

    f.defjvp(lambda primals, tangents: (primals[0] ** 3, tangents[0] * wl.stop_gradient(3 * primals[0] ** 2)))
    wl.check_grads(f, f64([1.0, 2.0]))
    with pytest.raises(GradientCheckError, match=r"mode over forward mode \(order 2\)"):
        wl.check_grads(f, f64([1.0, 2.0]), order=2)


@pytest.mark.book("6-22", name="wl.check_grads")
def test_precision() -> None:
    """What fails in float32 at a tolerance of 1e-6 passes in float64."""
    x = wl.tensor([0.5, 1.0, 2.0])
    with pytest.raises(GradientCheckError):
        wl.check_grads(wl.exp, (x,), rtol=1e-6, atol=1e-6, dtype=wl.float32)
    with pytest.raises(GradientCheckError):
        wl.check_grads(wl.exp, (x,), rtol=1e-6, atol=1e-6, dtype=None)
    wl.check_grads(wl.exp, (x,), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16, wl.float32])
def test_tolerance_follows_the_dtype(dtype: Any) -> None:
    x = wl.asarray(rng.uniform(0.5, 1.5, size=4)).astype(dtype)
    wl.check_grads(lambda x: wl.sin(x) * x, (x,), order=2, dtype=None)
    with pytest.raises(GradientCheckError):
        wl.check_grads(lambda x: x * wl.stop_gradient(x), (x,), dtype=None)


@pytest.mark.book("6-22", "6-80", "B6-21", name="wl.check_grads")
def test_kinks_are_named() -> None:
    for modes in (("forward",), ("reverse",)):
        with pytest.raises(GradientCheckError, match="the point is at a kink"):
            wl.check_grads(wl.relu, f64([1.0, 0.0, 2.0]), modes=modes)
    with pytest.warns(KinkWarning, match="slope -?[0-9.]+ to the left and -?[0-9.]+ to the right") as caught:
        wl.check_grads(wl.abs, f64([1.0, 0.0]))  # differences and derivative agree on 0 by chance
    assert caught[0].filename == __file__
    # AD is wrong for this way of writing x, and there is no kink to blame
    with pytest.raises(GradientCheckError) as error:
        wl.check_grads(lambda s: wl.relu(s) - wl.relu(-s), f64(0.0))
    assert "at a kink" not in str(error.value)


def test_no_kink_is_seen_on_smooth_functions() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in (lambda x: wl.exp(50 * x), lambda x: 1e4 * x**2, lambda x: wl.sin(200 * x), wl.sqrt):
            wl.check_grads(f, f64([0.3, 0.01]), rtol=1e-4)


def test_outside_the_domain() -> None:
    with np.errstate(all="ignore"), pytest.raises(GradientCheckError, match="not finite around the point"):
        wl.check_grads(wl.sqrt, f64([1.0, 0.0]))


def test_nan_is_never_right() -> None:
    @wl.custom_jvp
    def f(x: wl.Tensor) -> wl.Tensor:
        return x * 1

    f.defjvp(lambda primals, tangents: (primals[0] * 1, tangents[0] * float("nan")))
    for mode in ("forward", "reverse"):
        with pytest.raises(GradientCheckError, match="nan"):
            wl.check_grads(f, f64([1.0, 2.0]), modes=(mode,))


def test_functions_without_a_derivative_and_bad_calls() -> None:
    with pytest.raises(GradientError, match="nextafter"):
        wl.check_grads(lambda x: wl.nextafter(x, 1.0), f64(0.5))
    with pytest.raises(InputError, match="order=0"):
        wl.check_grads(wl.sin, 1.0, order=0)
    with pytest.raises(InputError, match="modes"):
        wl.check_grads(wl.sin, 1.0, modes=("sideways",))
    with pytest.raises(GradientError, match="int64"):
        wl.check_grads(lambda x: x.sum(), (wl.arange(3),))


def test_many_inputs_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    from wonderland.inspect import checking

    monkeypatch.setattr(checking, "MOST_LOCATED", 3)
    with pytest.raises(GradientCheckError, match="reverse mode is wrong at the sum along a random direction"):
        wl.check_grads(wrong_backward(1.1), f64(np.ones(4)), modes=("reverse",))
