"""Rows of chapter 1 and of the notation that are shown by a small program rather than by one function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.core.primitive import TABLE


@pytest.mark.book("1.01", name="wl.grad")
def test_every_primitive_says_whether_it_is_differentiable() -> None:
    """A rule per argument, or the mark that it has no derivative; only constants take no argument at all."""
    silent = [name for name, p in TABLE.items() if not callable(p.jvp) and not p.jvp and not p.linearize]
    assert set(silent) <= {"full", "iota", "constant"}
    # and the exported functions are composed of them: each has a derivative, or a clear refusal
    x = wl.tensor([[0.3, 0.6], [0.7, 0.2]], wl.float64)
    smooth = "exp log sin cos tan tanh sqrt square sigmoid softplus softmax logsumexp sum prod mean var norm sort"
    for name in smooth.split():
        f = lambda x, name=name: getattr(wl, name)(x).sum()
        np.testing.assert_allclose(wl.grad(f)(x).numpy(), wl.numerical_grad(f, x).numpy(), atol=1e-7, err_msg=name)
    for name in "floor ceil round trunc sign".split():  # noqa: SIM905 - constant almost everywhere
        assert wl.grad(lambda x, name=name: getattr(wl, name)(x).sum())(x).tolist() == [[0, 0], [0, 0]]
    for name in "argmax argsort isfinite".split():  # noqa: SIM905 - not numbers that vary
        with pytest.raises(wl.errors.GradientError):
            wl.grad(lambda x, name=name: getattr(wl, name)(x).sum())(x)


@pytest.mark.book("1.02", name=("wl.train.power_law", "wl.train.run_size"))
def test_the_exponent_of_a_scaling_law() -> None:
    """L = a N^-b is a line in logarithms; its slope is b."""
    a, b = 4.2, 0.076
    N = np.logspace(3, 9, 13)
    law = wl.train.power_law(N, a * N**-b)
    assert law.b == pytest.approx(b, abs=1e-6)
    assert law.a == pytest.approx(a, rel=1e-6)
    np.testing.assert_allclose(law(N), a * N**-b, rtol=1e-9)
    noisy = wl.train.power_law(N, a * N**-b * np.exp(np.random.default_rng(0).normal(scale=0.01, size=13)))
    assert noisy.b == pytest.approx(b, abs=0.005)
    for sizes, losses in (([1.0, 1.0], [2.0, 1.0]), ([1.0, 2.0], [0.0, 1.0]), ([1.0], [1.0]), ([1.0, 2.0], [1.0])):
        with pytest.raises(wl.errors.InputError, match="power_law"):
            wl.train.power_law(sizes, losses)


@pytest.mark.book("1.02", name=("wl.train.run_size", "wl.count", "wl.nn.Module.num_parameters"))
def test_what_a_run_costs() -> None:
    """N, D and C of a network by hand: C grows with each of the other two."""
    c, o, n, steps = 6, 3, 8, 5

    def size(h: int, n: int = n, steps: int = steps) -> Any:
        model = wl.nn.Sequential(wl.nn.Linear(c, h), wl.nn.ReLU(), wl.nn.Linear(h, o))
        return wl.train.run_size(model, wl.nn.MSELoss(), (wl.ones((n, c)), wl.ones((n, o))), steps, reached=0.25)

    for h in (16, 64):
        found = size(h)
        assert found.parameters == (c * h + h) + (h * o + o)
        assert (found.examples, found.loss) == (n * steps, 0.25)
        products = n * c * h * 2 + n * h * o * 3  # forward and weights; in the second layer the inputs, too
        assert 0 <= found.multiply_adds / steps - products <= 0.5 * products  # what is left is elementwise
    assert size(64, steps=2 * steps).multiply_adds == 2 * size(64).multiply_adds
    assert size(64, n=2 * n).multiply_adds == pytest.approx(2 * size(64).multiply_adds, rel=0.1)
    wide, narrow = size(512), size(256)
    assert wide.multiply_adds / narrow.multiply_adds == pytest.approx(wide.parameters / narrow.parameters, rel=0.02)


def mlp(params: dict[str, Any], X: Any) -> Any:
    return (wl.tanh(X @ params["W1"] + params["b1"]) @ params["W2"])[:, 0]


@pytest.mark.book("1.03", name="wl.value_and_grad")
def test_a_large_network_memorises_random_labels() -> None:
    """All labels of the training set, while on new data it guesses."""
    rng = np.random.default_rng(0)
    n, d, width = 40, 10, 200
    X, y = wl.asarray(rng.normal(size=(n, d))), wl.asarray(rng.integers(0, 2, n) * 2.0 - 1)
    params = {
        "W1": wl.asarray(rng.normal(size=(d, width)) / np.sqrt(d)),
        "b1": wl.zeros(width, dtype="float64"),
        "W2": wl.asarray(rng.normal(size=(width, 1)) / np.sqrt(width)),
    }

    @wl.jit
    def step(params: Any) -> Any:
        loss, gradient = wl.value_and_grad(lambda p: wl.softplus(-y * mlp(p, X)).mean())(params)
        return wl.tree.map(lambda p, g: p - 1.0 * g, params, gradient), loss

    first = None
    for _ in range(300):
        params, loss = step(params)
        first = loss if first is None else first
    assert loss.item() < 0.1 * first.item()
    accuracy = lambda X, y: (wl.sign(mlp(params, X)) == y).mean().item()
    assert accuracy(X, y) == 1.0
    new_X, new_y = wl.asarray(rng.normal(size=(2000, d))), wl.asarray(rng.integers(0, 2, 2000) * 2.0 - 1)
    assert abs(accuracy(new_X, new_y) - 0.5) < 0.06  # more than five standard errors


def perceptron(X: Any, y: Any, rounds: int) -> tuple[Any, bool]:
    """Rosenblatt's rule: add every example that the step unit gets wrong, until a round without mistakes."""
    w = wl.zeros(X.shape[1], dtype=X.dtype)
    for _ in range(rounds):
        mistakes = 0
        for x_i, y_i in zip(X, y, strict=True):
            if (x_i @ w) * y_i <= 0:
                w, mistakes = w + y_i * x_i, mistakes + 1
        if not mistakes:
            return w, True
    return w, False


@pytest.mark.book("1.15", name="wl.sign")
def test_the_perceptron_learns_what_a_line_separates_and_never_xor() -> None:
    corners = wl.tensor([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])  # the last column: bias
    conjunction, exclusive = wl.tensor([-1.0, -1.0, -1.0, 1.0]), wl.tensor([-1.0, 1.0, 1.0, -1.0])
    w, converged = perceptron(corners, conjunction, 50)
    assert converged
    assert wl.sign(corners @ w).tolist() == conjunction.tolist()
    assert not perceptron(corners, exclusive, 200)[1]
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    margin = X @ np.array([1.0, -2.0, 0.5])
    X, margin = X[np.abs(margin) > 0.3], margin[np.abs(margin) > 0.3]
    assert perceptron(wl.asarray(X), wl.asarray(np.sign(margin)), 200)[1]
