"""The imperative style: tensors that remember, `backward()`, `.grad`. Book, section 6.4.2."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.transforms.counting import operations, values_alive
from wonderland.errors import GradientError

rng = np.random.default_rng(0)


def leaf(x: Any) -> wl.Tensor:
    return wl.asarray(np.asarray(x, np.float64)).requires_grad_()


def grad_of(x: wl.Tensor) -> Any:
    assert x.grad is not None
    return x.grad.numpy()


@pytest.mark.book("6-62", name="wl.Tensor.requires_grad_")
def test_what_a_tensor_knows() -> None:
    x, c = leaf([1.0, 2.0]), wl.ones(2)
    assert (x.requires_grad, x.is_leaf, x.grad, x.grad_fn) == (True, True, None, None)
    assert (c.requires_grad, c.is_leaf, c.grad, c.grad_fn) == (False, True, None, None)
    y = x * 2
    assert y.requires_grad
    assert not y.is_leaf
    assert y.grad_fn.name == "multiply"
    assert (c + c).requires_grad is False
    assert (c + x).requires_grad is True  # one of them is enough
    z = wl.sin(y).sum()
    assert z.grad_fn.name == "sum"
    assert [f.name for f in z.grad_fn.next_functions] == ["sin"]
    assert [f.name for f in z.grad_fn.next_functions[0].next_functions] == ["multiply"]
    assert repr(z.grad_fn) == "<sum>"


@pytest.mark.book("6-63", name="wl.Tensor.backward")
def test_only_leaves_keep_their_gradient() -> None:
    x, c = leaf([1.0, 2.0]), wl.asarray(np.array([3.0, 4.0]))
    h = x * c
    y = (h**2).sum()
    y.backward()
    np.testing.assert_array_equal(grad_of(x), 2 * np.array([1.0, 2.0]) * np.array([9.0, 16.0]))
    assert h.grad is None
    assert y.grad is None
    assert c.grad is None


@pytest.mark.book("6-36", "A3-10", name="wl.Tensor.retain_grad")
def test_gradients_of_intermediate_values_and_inputs() -> None:
    x, w = leaf([0.5, -1.0]), leaf([[1.0, 2.0], [3.0, 4.0]])
    h = wl.tanh(w @ x)
    h.retain_grad()
    y = (h**3).sum()
    y.retain_grad()
    y.backward()
    f = lambda h: (h**3).sum()
    np.testing.assert_allclose(grad_of(h), wl.numerical_grad(f, h.detach()), rtol=1e-7)
    assert grad_of(y) == 1.0
    g = lambda x, w: f(wl.tanh(w @ x))
    for i, tensor in enumerate((x, w)):
        other = [x.detach(), w.detach()]
        np.testing.assert_allclose(grad_of(tensor), wl.grad(g, argnums=i)(*other), rtol=1e-14)


@pytest.mark.book("6-64", name="wl.Tensor.zero_grad")
def test_gradients_accumulate_until_they_are_cleared() -> None:
    x = leaf(3.0)
    (x**2).backward()
    (x**2).backward()
    assert grad_of(x) == 12.0
    x.zero_grad()
    assert x.grad is None
    (x**3).backward()
    assert grad_of(x) == 27.0
    x.grad = None
    x.grad = wl.asarray(np.array(100.0))
    x.backward()
    assert grad_of(x) == 101.0


@pytest.mark.book("6-64", name="wl.Tensor.backward")
def test_a_second_backward_needs_the_graph() -> None:
    x = leaf(3.0)
    y = x**2 * x
    y.backward(retain_graph=True)
    y.backward()
    assert grad_of(x) == 54.0
    with pytest.raises(GradientError, match=r"released by an earlier backward.*\n.*retain_graph=True"):
        y.backward()
    # also through a part that two results share
    h = wl.sin(x)
    a, b = h * 2, h * 3
    a.backward()
    with pytest.raises(GradientError, match="released"):
        b.backward()


@pytest.mark.book("6-15", "A3-09", name="wl.Tensor.backward")
def test_a_start_for_tensors_that_are_no_scalars() -> None:
    x = leaf([1.0, 2.0, 3.0])
    with pytest.raises(GradientError, match=r"shape \(3,\) needs a gradient to start from"):
        (x**2).backward()
    (x**2).backward(wl.ones(3, dtype=wl.float64))
    ones = grad_of(x)
    x.zero_grad()
    (x**2).sum().backward()
    np.testing.assert_array_equal(ones, grad_of(x))
    x.zero_grad()
    (x**2).backward([1.0, 0.0, 2.0])
    np.testing.assert_array_equal(grad_of(x), [2.0, 0.0, 12.0])
    with pytest.raises(GradientError, match=r"gradient of float64\[2\] for a value of float64\[3\]"):
        (x**2).backward(wl.ones(2, dtype=wl.float64))


def test_what_cannot_be_asked() -> None:
    with pytest.raises(GradientError, match="a tensor of int64 has no gradient"):
        wl.arange(3).requires_grad_()
    with pytest.raises(GradientError, match="was not made from tensors that require gradients"):
        wl.ones(()).backward()
    with pytest.raises(GradientError, match="only leaves"):
        (leaf(1.0) * 2).requires_grad_(False)
    with pytest.raises(GradientError, match="not recorded"):
        wl.ones(2).retain_grad()
    with pytest.raises(GradientError, match="not recorded"):
        wl.ones(2).register_hook(print)
    with pytest.raises(GradientError, match="does not require gradients"):
        wl.ones(2).grad = wl.ones(2)
    with pytest.raises(GradientError, match="inside a transformation"):
        wl.grad(lambda x: x.requires_grad_() * 2)(1.0)


def test_integers_on_the_way_carry_nothing() -> None:
    x = leaf([3.0, 1.0, 2.0])
    order = wl.argsort(x)
    assert not order.requires_grad
    assert not (x > 1).requires_grad
    (x[order] * wl.arange(3)).sum().backward()
    np.testing.assert_array_equal(grad_of(x), [2.0, 0.0, 1.0])


def test_uses_of_a_value_add_up() -> None:
    x = leaf(1.5)
    a = x + 1
    b = a * a
    (b + a * b).backward()
    assert grad_of(x) == pytest.approx(2 * 2.5 + 3 * 2.5**2)


@pytest.mark.book("6-81", name="wl.Tensor.backward")
def test_doubling_thirty_times_costs_thirty_steps() -> None:
    x = leaf(1.0)
    y = x
    with operations() as counted:
        for _ in range(30):
            y = y + y
        y.backward()
    assert grad_of(x) == 2.0**30
    assert counted["add"] <= 60


def test_several_results_of_one_operation() -> None:
    A = leaf(rng.normal(size=(3, 3)) + 3 * np.eye(3))
    Q, R = wl.linalg.qr(A)
    (wl.sin(R).sum() + Q[0, 0]).backward()
    f = lambda A: wl.sin(wl.linalg.qr(A)[1]).sum() + wl.linalg.qr(A)[0][0, 0]
    np.testing.assert_allclose(grad_of(A), wl.grad(f)(A.detach()), rtol=1e-11)


@pytest.mark.book("6-39", "A3-19", name="wl.no_grad")
def test_no_grad_records_nothing() -> None:
    x = leaf([1.0, 2.0])
    with wl.no_grad():
        y = wl.sin(x) * 2
        assert not y.requires_grad
        with wl.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad

    @wl.no_grad()
    def evaluate(x: wl.Tensor) -> wl.Tensor:
        return x * 2

    assert not evaluate(x).requires_grad
    with pytest.raises(ZeroDivisionError), wl.no_grad():
        _ = 1 // 0
    assert (x * 2).requires_grad

    def chain(x: wl.Tensor) -> wl.Tensor:
        for _ in range(30):
            x = wl.tanh(x)
        return x

    with values_alive() as alive, wl.no_grad():
        chain(x)
    assert max(alive.history) <= 3


def test_detach_cuts_the_recording() -> None:
    x = leaf(3.0)
    y = x * x.detach()
    y.backward()
    assert grad_of(x) == 3.0
    assert not x.detach().requires_grad
    x.zero_grad()
    (x * wl.stop_gradient(x)).backward()
    assert grad_of(x) == 3.0


def test_hooks_see_and_change_gradients() -> None:
    x = leaf([1.0, 2.0])
    h = x * 3
    seen: list[Any] = []
    remove = h.register_hook(lambda g: seen.append(g.numpy().copy()))
    (h**2).sum().backward()
    np.testing.assert_array_equal(seen, [[6.0, 12.0]])
    remove()
    h = x * 3
    h.register_hook(lambda g: g * 0 + 1)
    h.register_hook(lambda g: g * 10)  # in the order of their registration
    x.zero_grad()
    (h**2).sum().backward()
    np.testing.assert_array_equal(grad_of(x), [30.0, 30.0])
    x.zero_grad()
    x.register_hook(lambda g: -g)
    x.sum().backward()
    np.testing.assert_array_equal(grad_of(x), [-1.0, -1.0])
    assert len(seen) == 1


def test_a_hook_sees_the_whole_gradient_once() -> None:
    x = leaf(2.0)
    h = x * 1
    seen: list[float] = []
    h.register_hook(lambda g: seen.append(g.item()))
    (h * 2 + h * 3 + wl.sin(h) * 0).backward()
    assert seen == [5.0]


@pytest.mark.book("6-61", name="wl.Tensor.backward")
def test_double_backward() -> None:
    x = leaf(2.0)
    y = x**4
    y.backward(create_graph=True)
    first = x.grad
    assert first is not None
    assert first.item() == 32.0
    assert first.requires_grad
    x.grad = None
    first.backward(create_graph=True)
    second = x.grad
    assert second is not None
    assert second.item() == 48.0
    x.grad = None
    second.backward()
    assert grad_of(x) == 48.0
    assert x.grad is not None
    assert not x.grad.requires_grad


def test_penalty_on_the_gradient() -> None:
    """A loss that contains a gradient, as in gradient penalties."""
    w, x = leaf([0.5, -1.0, 2.0]), wl.asarray(rng.normal(size=3))

    def penalised(w: wl.Tensor) -> wl.Tensor:
        return (wl.grad(lambda v: wl.tanh(v @ x) ** 2)(w) ** 2).sum()

    y = wl.tanh(w @ x) ** 2
    y.backward(create_graph=True)
    g, w.grad = w.grad, None
    assert g is not None
    (g**2).sum().backward()
    np.testing.assert_allclose(grad_of(w), wl.grad(penalised)(w.detach()), rtol=1e-12)


def test_complex_gradients_follow_the_convention_of_grad() -> None:
    z = wl.asarray(np.array([1 + 2j, -0.5 + 1j])).requires_grad_()
    f = lambda z: wl.real(wl.exp(z) * wl.conj(z)).sum()
    f(z).backward()
    np.testing.assert_allclose(grad_of(z), wl.grad(f)(z.detach()), rtol=1e-14)


def test_agrees_with_grad_on_a_network() -> None:
    X, y = wl.asarray(rng.normal(size=(8, 3))), wl.asarray(rng.integers(0, 2, size=8))
    p = {"W": rng.normal(size=(3, 5)), "b": rng.normal(size=5), "V": rng.normal(size=(5, 2))}

    def loss(p: Any) -> wl.Tensor:
        logits = wl.relu(X @ p["W"] + p["b"]) @ p["V"]
        return -wl.log_softmax(logits)[wl.arange(8), y].mean()

    leaves = {key: leaf(value) for key, value in p.items()}
    loss(leaves).backward()
    want = wl.grad(loss)({key: wl.asarray(value) for key, value in p.items()})
    for key in p:
        np.testing.assert_allclose(grad_of(leaves[key]), want[key], rtol=1e-12, atol=1e-15)


@pytest.mark.book("6-39", name="wl.Tensor.backward")
def test_the_recording_is_released_by_backward_and_by_dropping_the_result() -> None:
    x = leaf(np.ones(4))

    def record() -> tuple[wl.Tensor, list[weakref.ref[Any]]]:
        h, kept = x, []
        for _ in range(20):
            h = wl.sin(h)
            kept.append(weakref.ref(h._data))  # the memory: the recording has tensors of its own over it
        return h.sum(), kept

    gc.disable()  # reference counts alone free the recording: there are no cycles
    try:
        y, kept = record()
        assert sum(r() is not None for r in kept) >= 19
        y.backward()
        assert sum(r() is not None for r in kept) == 0
        y, kept = record()
        del y
        assert sum(r() is not None for r in kept) == 0
    finally:
        gc.enable()


def test_updates_in_a_loop() -> None:
    """Gradient descent as people write it."""
    w = leaf([4.0, -3.0])
    for _ in range(60):
        w.zero_grad()
        ((w - 1) ** 2).sum().backward()
        with wl.no_grad():
            w = (w - 0.2 * wl.asarray(grad_of(w))).requires_grad_()
    np.testing.assert_allclose(w.numpy(), [1.0, 1.0], atol=1e-9)


def test_graph_and_checkpointed_functions_can_be_recorded() -> None:
    x = leaf([0.3, 0.7])
    f = lambda x: wl.sin(x) * x
    for g in (wl.jit(f), wl.checkpoint(f)):
        x.zero_grad()
        g(x).sum().backward()
        np.testing.assert_allclose(grad_of(x), wl.grad(lambda x: f(x).sum())(x.detach()), rtol=1e-14)


def test_mixed_with_transformations() -> None:
    x = leaf(rng.normal(size=(3, 2)))
    wl.vmap(lambda row: (row**2).sum())(x).sum().backward()
    np.testing.assert_allclose(grad_of(x), 2 * x.numpy())
    y = leaf(2.0)
    wl.grad(lambda y: y**3)(y).backward()  # the derivative is recorded like any other operation
    assert grad_of(y) == 12.0
    assert wl.grad(lambda x: _squared_without_recording(x))(3.0).item() == 6.0
    with pytest.raises(GradientError, match="the transformation takes the gradient"):
        wl.grad(lambda x: (x * 2).backward())(1.0)


def _squared_without_recording(x: wl.Tensor) -> wl.Tensor:
    with wl.no_grad():  # concerns backward() alone
        return x**2


def test_threads_do_not_disturb_each_other() -> None:
    import threading

    results: list[float] = []

    def work() -> None:
        for _ in range(20):
            with wl.no_grad():
                results.append(wl.grad(lambda x: wl.grad(lambda y: x * y * y)(3.0))(2.0).item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    x = leaf(1.0)
    for _ in range(20):
        assert (x * 2).requires_grad
    for thread in threads:
        thread.join()
    assert results == [6.0] * 80
