"""Adversarial examples: exact for linear models, bounded for all, and training against them."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.adversarial import adversarial_loss, adversarial_train, fgsm, input_gradient, pgd, robust_accuracy
from wonderland.errors import InputError, ShapeError

F = nn.functional
X = wl.random.normal((12, 5), key=wl.random.key(0), dtype=wl.float64)
Y = wl.asarray(np.arange(12) % 3)


def network(seed=0, dtype=wl.float64):
    k = wl.random.split(wl.random.key(seed), 2)
    return nn.Sequential(nn.Linear(5, 16, dtype=dtype, key=k[0]), wl.tanh, nn.Linear(16, 3, dtype=dtype, key=k[1]))


@pytest.mark.book("A8-10", name="wl.adversarial.fgsm")
@pytest.mark.parametrize("eps", [0.007, 0.3])
def test_a_step_along_the_signs_raises_the_loss(eps):
    model = network()
    changed = fgsm(model, F.cross_entropy, X, Y, eps)
    # every number moves by eps exactly; the noise is eps times the sign, and the changed input is x plus it
    np.testing.assert_allclose(np.abs(changed.numpy() - X.numpy()), eps, rtol=1e-12)
    each = lambda x: F.cross_entropy(model(x), Y, reduction="none").numpy()
    assert (each(changed) > each(X)).all()
    np.testing.assert_allclose(wl.jit(lambda m, x: fgsm(m, F.cross_entropy, x, Y, eps))(model, X), changed, rtol=1e-12)
    numerical = wl.numerical_grad(lambda x: F.cross_entropy(model(x), Y), X)
    np.testing.assert_allclose(input_gradient(model, F.cross_entropy, X, Y), numerical, atol=1e-6)
    clipped = fgsm(model, F.cross_entropy, X, Y, eps, clip=(-0.5, 0.5)).numpy()
    np.testing.assert_array_equal(clipped, np.clip(changed.numpy(), -0.5, 0.5))


@pytest.mark.book("A8-10", name="wl.adversarial.fgsm")
def test_the_margin_of_a_linear_model_falls_by_eps_times_the_norm():
    w = np.random.default_rng(0).normal(size=(5, 1))
    model = nn.Linear.from_matrix(w, [0.3])
    signs = np.where(np.arange(12) % 2, 1.0, -1.0)[:, None]
    y = wl.asarray((signs + 1) / 2)
    for eps in (0.05, 0.4):
        changed = fgsm(model, F.binary_cross_entropy_with_logits, X, y, eps)
        drop = signs * (model(X).numpy() - model(changed).numpy())
        np.testing.assert_allclose(drop, eps * np.abs(w).sum(), rtol=1e-9)
        best = pgd(model, F.binary_cross_entropy_with_logits, X, y, eps, norm="l2", random_start=False)
        drop = signs * (model(X).numpy() - model(best).numpy())
        np.testing.assert_allclose(drop, eps * np.linalg.norm(w), rtol=1e-9)  # the dual norm of the ball


@pytest.mark.book("A8-10", name="wl.adversarial.fgsm")
@pytest.mark.parametrize("attack", [fgsm, pgd])
def test_parameters_and_their_gradients_are_left_alone(attack):
    model = network()
    F.cross_entropy(model(X), Y).backward()
    grads = [p.grad.numpy().copy() for p in model.parameters()]
    values = [p.numpy().copy() for p in model.parameters()]
    attack(model, F.cross_entropy, X, Y, 0.1)
    for p, g, v in zip(model.parameters(), grads, values, strict=True):
        np.testing.assert_array_equal(p.grad, g)
        np.testing.assert_array_equal(p, v)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("random_start", [True, False])
def test_pgd_stays_in_its_ball_and_beats_one_step(norm, random_start):
    model, eps = network(), 0.5
    settings = {"norm": norm, "random_start": random_start, "key": wl.random.key(3)}
    changed = pgd(model, F.cross_entropy, X, Y, eps, steps=40, **settings)
    apart = (changed - X).numpy()
    size = np.abs(apart).max(1) if norm == "linf" else np.linalg.norm(apart, axis=1)
    assert (size <= eps * (1 + 1e-9)).all()
    single = pgd(model, F.cross_entropy, X, Y, eps, steps=1, step_size=eps, norm=norm, random_start=False)
    loss = lambda x: float(F.cross_entropy(model(x), Y))
    assert loss(changed) >= loss(single) - 1e-3 > loss(X)
    inside = pgd(model, F.cross_entropy, X, Y, eps, clip=(-1.0, 1.0), **settings).numpy()
    assert np.abs(inside).max() <= 1.0
    if norm == "linf" and not random_start:
        np.testing.assert_allclose(single, fgsm(model, F.cross_entropy, X, Y, eps), rtol=1e-12)
    compiled = wl.jit(lambda m, x: pgd(m, F.cross_entropy, x, Y, eps, steps=2, norm=norm, random_start=False))
    expected = pgd(model, F.cross_entropy, X, Y, eps, steps=2, norm=norm, random_start=False)
    np.testing.assert_allclose(compiled(model, X), expected, rtol=1e-9)


@pytest.mark.book("A8-12", name=("wl.adversarial.adversarial_train", "wl.adversarial.robust_accuracy"))
def test_training_against_attacks_makes_a_model_robust():
    # one strong number that an attack of 0.5 cannot turn, and 20 weak ones that it can, but which fit better
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    sign = 2.0 * y[:, None] - 1
    strong = sign * np.where(rng.uniform(size=(300, 1)) < 0.95, 1.0, -1.0)
    x = np.concatenate([strong, 0.25 * sign + 0.4 * rng.normal(size=(300, 20))], axis=1).astype(np.float32)
    x, y = wl.asarray(x), wl.asarray(y)

    def train(mix):
        model = nn.Linear(21, 2, key=wl.random.key(0))
        return adversarial_train(model, F.cross_entropy, x, y, 0.5, mix, epochs=150, batch_size=None, lr=0.05)

    plain, robust = train(0.0), train(1.0)
    at = lambda model, eps: robust_accuracy(model, F.cross_entropy, x, y, eps)
    assert at(plain, 0.0) > 0.97
    assert at(robust, 0.5) > at(plain, 0.5) + 0.3
    assert robust_accuracy(robust, F.cross_entropy, x, y, 0.5, attack=pgd, steps=5, random_start=False) > 0.8


def test_the_mixture_of_losses():
    model = network()
    clean = float(F.cross_entropy(model(X), Y))
    hard = float(F.cross_entropy(model(fgsm(model, F.cross_entropy, X, Y, 0.2)), Y))
    for mix in (0.0, 0.25, 1.0):
        got = float(adversarial_loss(model, F.cross_entropy, X, Y, 0.2, mix))
        np.testing.assert_allclose(got, (1 - mix) * clean + mix * hard, rtol=1e-12)
    # the changed inputs count as constants
    changed = fgsm(model, F.cross_entropy, X, Y, 0.2)
    grads = wl.grad(lambda m: adversarial_loss(m, F.cross_entropy, X, Y, 0.2, 1.0))(model)
    expected = wl.grad(lambda m: F.cross_entropy(m(changed), Y))(model)
    for path, g in grads.items():
        np.testing.assert_allclose(g, expected[path], rtol=1e-9, atol=1e-12)


def test_bad_input():
    model = network()
    with pytest.raises(InputError, match="eps=-1"):
        fgsm(model, F.cross_entropy, X, Y, -1)
    with pytest.raises(InputError, match="norm='l1'"):
        pgd(model, F.cross_entropy, X, Y, 0.1, norm="l1")
    with pytest.raises(InputError, match="clip"):
        fgsm(model, F.cross_entropy, X, Y, 0.1, clip=(1.0, 0.0))
    with pytest.raises(InputError, match="mix=2"):
        adversarial_loss(model, F.cross_entropy, X, Y, 0.1, mix=2)
    with pytest.raises(ShapeError, match="logits of shape"):
        robust_accuracy(nn.Linear(5, 1, dtype=wl.float64), lambda p, y: (p[:, 0] - y).sum(), X, Y[:, None], 0.1)
