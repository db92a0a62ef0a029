"""Losses as functions and as modules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError

F = nn.functional
rng = np.random.default_rng(0)
LOGITS = rng.normal(size=(2, 3, 5))
CLASSES = np.array([[0, 4, -100], [2, 2, 1]])
WEIGHT = rng.uniform(0.5, 2.0, size=5)
PROBABILITIES = special.softmax(rng.normal(size=(2, 3, 5)), axis=-1)


def terms(targets, smoothing, weight):
    """-w p log softmax, with p from classes or probabilities, summed over the classes."""
    p = np.eye(5)[np.maximum(targets, 0)] if targets.dtype == int else targets
    p = (1 - smoothing) * p + smoothing / 5
    return -(weight * p * special.log_softmax(LOGITS, axis=-1)).sum(-1)


@pytest.mark.book("4.48", "A3-05", name="wl.nn.functional.cross_entropy")
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_cross_entropy(smoothing, weighted, compiled):
    weight = WEIGHT if weighted else None
    w = WEIGHT if weighted else np.ones(5)
    counted = CLASSES != -100
    losses = terms(CLASSES, smoothing, w) * counted
    shares = (w[np.maximum(CLASSES, 0)] * counted).sum()
    expected = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / shares}
    soft = terms(PROBABILITIES, smoothing, w)
    expected_soft = {"none": soft, "sum": soft.sum(), "mean": soft.mean()}
    for reduction in ("none", "sum", "mean"):

        def f(x, y, reduction=reduction):
            return F.cross_entropy(x, y, weight, reduction=reduction, label_smoothing=smoothing)

        f = wl.jit(f) if compiled else f
        np.testing.assert_allclose(f(wl.asarray(LOGITS), wl.asarray(CLASSES)), expected[reduction], rtol=1e-12)
        np.testing.assert_allclose(
            f(wl.asarray(LOGITS), wl.asarray(PROBABILITIES)), expected_soft[reduction], rtol=1e-12
        )


def test_cross_entropy_of_bfloat16():
    x = wl.asarray(rng.normal(size=(4, 3000))).astype(wl.bfloat16)
    loss = F.cross_entropy(x, wl.tensor([0, 1, 2, 3]))
    assert loss.dtype == wl.bfloat16
    wide = F.cross_entropy(x.astype(wl.float64), wl.tensor([0, 1, 2, 3]))
    np.testing.assert_allclose(loss.astype(wl.float64), wide, rtol=2**-8)


def test_gradient_of_cross_entropy_is_softmax_minus_one_hot():
    x, y = wl.asarray(LOGITS[0]), wl.tensor([0, 4, 2])
    gradient = wl.grad(lambda x: F.cross_entropy(x, y))(x)
    np.testing.assert_allclose(gradient, (special.softmax(LOGITS[0], -1) - np.eye(5)[[0, 4, 2]]) / 3, atol=1e-14)
    wl.check_grads(lambda x: F.cross_entropy(x, y, WEIGHT, label_smoothing=0.2), (x,), order=2)
    hot = wl.asarray(np.eye(5)[[0, 4, 2]])
    np.testing.assert_allclose(F.cross_entropy(x, hot), F.cross_entropy(x, y), rtol=1e-12)


def test_nothing_as_large_as_the_logits_is_made_for_the_targets():
    graph = wl.jit(F.cross_entropy).graph(wl.ones((8, 1000)), wl.zeros((8,), dtype=wl.int64))
    large = [e.primitive.name for e in graph.equations if any(v.aval.shape == (8, 1000) for v in e.outputs)]
    assert sorted(large) == ["exp", "subtract"]


@pytest.mark.book("4.48", name="wl.nn.functional.cross_entropy")
def test_numbers_of_the_book():
    log_p = np.log([[0.75, 0.25]])
    np.testing.assert_allclose(F.cross_entropy(log_p, wl.tensor([0])), 0.28768207, rtol=1e-7)
    np.testing.assert_allclose(F.nll_loss(log_p, wl.tensor([0])), 0.28768207, rtol=1e-7)
    np.testing.assert_allclose(F.cross_entropy(np.zeros((3, 7)), wl.tensor([0, 3, 6])), np.log(7), rtol=1e-12)


def test_cross_entropy_of_extreme_logits():
    x = wl.tensor([[1e4, 0.0, -1e4], [-1e30, 0.0, 1.0]])
    assert F.cross_entropy(x, wl.tensor([0, 2]), reduction="none").tolist() == [0.0, pytest.approx(0.3132617)]
    assert F.cross_entropy(x[0], wl.tensor(2)).item() == 2e4
    assert np.isfinite(wl.grad(lambda x: F.cross_entropy(x, wl.tensor([0, 2])))(x).numpy()).all()
    masked = wl.tensor([[-np.inf, 0.0, 0.0]])
    np.testing.assert_allclose(F.cross_entropy(masked, wl.tensor([1])), np.log(2), rtol=1e-6)


def test_targets_that_do_not_count():
    x = wl.asarray(LOGITS)
    nobody = wl.full((2, 3), -100)
    assert F.cross_entropy(x, nobody).item() == 0.0
    assert not wl.grad(lambda x: F.cross_entropy(x, nobody))(x).numpy().any()
    some = wl.asarray(np.where(CLASSES == -100, 3, CLASSES))
    np.testing.assert_allclose(F.cross_entropy(x, some, ignore_index=3), F.cross_entropy(x, wl.asarray(CLASSES)))
    gradient = wl.grad(lambda x: F.cross_entropy(x, wl.asarray(CLASSES)))(x).numpy()
    assert not gradient[0, 2].any()
    assert gradient[0, 1].any()


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize("wrap", [lambda f: f, wl.jit])
@pytest.mark.parametrize("label", [5, -1, -5])
def test_a_label_out_of_range_raises(loss, wrap, label):
    with pytest.raises(IndexOutOfRange):
        wrap(loss)(wl.ones((2, 5)), wl.tensor([0, label]))


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_classes_that_do_not_fit(loss):
    with pytest.raises(ShapeError, match=r"classes of shape \(2, 1\) do not belong to scores of shape \(2, 5\)"):
        loss(wl.ones((2, 5)), wl.zeros((2, 1), dtype=wl.int64))
    with pytest.raises(ShapeError, match="no classes"):
        loss(wl.tensor(1.0), wl.tensor(0))
    with pytest.raises(ShapeError, match=r"weights of shape \(4,\) for 5 classes"):
        loss(wl.ones((2, 5)), wl.tensor([0, 1]), wl.ones(4))
    with pytest.raises(InputError, match="reduction='avg'"):
        loss(wl.ones((2, 5)), wl.tensor([0, 1]), reduction="avg")
    with pytest.raises(DTypeError, match="labels of dtype"):
        loss(wl.ones((2, 5)), wl.tensor([True, False]))


def test_probabilities_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"shape \(2, 5\) and targets of shape \(2, 4\) differ"):
        F.cross_entropy(wl.ones((2, 5)), wl.ones((2, 4)))
    with pytest.raises(InputError, match=r"label_smoothing=1\.5"):
        F.cross_entropy(wl.ones((2, 5)), wl.tensor([0, 1]), label_smoothing=1.5)


PREDICTED, WANTED = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
E = PREDICTED - WANTED
ELEMENTWISE = [
    (F.mse_loss, nn.MSELoss, {}, E**2),
    (F.l1_loss, nn.L1Loss, {}, np.abs(E)),
    (F.huber_loss, nn.HuberLoss, {"delta": 0.7}, special.huber(0.7, E)),
    (F.smooth_l1_loss, nn.SmoothL1Loss, {"beta": 0.7}, special.huber(0.7, E) / 0.7),
    (F.smooth_l1_loss, nn.SmoothL1Loss, {"beta": 0.0}, np.abs(E)),
]


@pytest.mark.parametrize("f, module, settings, losses", ELEMENTWISE)
@pytest.mark.parametrize("dtype", [wl.float32, wl.float64])
def test_errors_of_numbers(f, module, settings, losses, dtype):
    x, y = wl.asarray(PREDICTED, dtype=dtype), wl.asarray(WANTED, dtype=dtype)
    for reduction, expected in (("none", losses), ("sum", losses.sum()), ("mean", losses.mean())):
        value = f(x, y, reduction=reduction, **settings)
        assert value.dtype == dtype
        np.testing.assert_allclose(value, expected, rtol=1e-12 if dtype == wl.float64 else 1e-5)
        np.testing.assert_array_equal(module(reduction=reduction, **settings)(x, y), value)
        np.testing.assert_allclose(wl.jit(module(reduction=reduction, **settings))(x, y), value, rtol=1e-6)
    if dtype == wl.float64:
        wl.check_grads(lambda x: f(x, y, **settings), (x,))


@pytest.mark.book("4.03", name="wl.nn.functional.mse_loss")
def test_slope_of_the_squared_error():
    gradient = wl.grad(lambda x: F.mse_loss(x, wl.asarray(WANTED)))(wl.asarray(PREDICTED))
    np.testing.assert_allclose(gradient, 2 * E / E.size, rtol=1e-14)


@pytest.mark.book("4.06", name="wl.nn.functional.huber_loss")
def test_huber_of_the_book():
    loss = lambda e: F.huber_loss(e, wl.zeros((), dtype=wl.float64))
    for e, value, slope in (
        (1.0, 0.5, 1.0),
        (1 + 1e-9, 0.5, 1.0),
        (3.0, 2.5, 1.0),
        (-3.0, 2.5, -1.0),
        (0.5, 0.125, 0.5),
    ):
        found = wl.value_and_grad(loss)(wl.tensor(e, wl.float64))
        np.testing.assert_allclose([v.item() for v in found], [value, slope], rtol=1e-8)


@pytest.mark.parametrize(
    "loss",
    [F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss, F.binary_cross_entropy, F.binary_cross_entropy_with_logits],
)
def test_losses_do_not_broadcast(loss):
    for shape in ((4,), (1, 4), (), (4, 2)):
        with pytest.raises(ShapeError, match=r"predictions of shape \(4, 1\) and targets of shape"):
            loss(wl.full((4, 1), 0.5), wl.full(shape, 0.5))
    with pytest.raises(InputError, match="reduction='max'"):
        loss(wl.full((4, 1), 0.5), wl.full((4, 1), 0.5), reduction="max")


@pytest.mark.book(
    "4.55", name=("wl.nn.functional.binary_cross_entropy_with_logits", "wl.nn.functional.binary_cross_entropy")
)
def test_binary_cross_entropy():
    x, y = rng.normal(size=(4, 3)), rng.integers(0, 2, size=(4, 3)).astype(float)
    p = special.expit(x)
    expected = -y * np.log(p) - (1 - y) * np.log(1 - p)
    np.testing.assert_allclose(F.binary_cross_entropy_with_logits(x, y, reduction="none"), expected, rtol=1e-10)
    np.testing.assert_allclose(F.binary_cross_entropy(p, y, reduction="none"), expected, rtol=1e-10)
    weight, positive = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 4.0])
    expected = weight * (-positive * y * np.log(p) - (1 - y) * np.log(1 - p))
    module = nn.BCEWithLogitsLoss(weight, pos_weight=positive)
    np.testing.assert_allclose(module(x, y), expected.mean(), rtol=1e-10)
    np.testing.assert_allclose(nn.BCELoss(weight)(p, y), F.binary_cross_entropy(p, y, weight), rtol=1e-12)
    wl.check_grads(
        lambda x: F.binary_cross_entropy_with_logits(x, y, weight, pos_weight=positive), (wl.asarray(x),), order=2
    )
    np.testing.assert_allclose(F.binary_cross_entropy(wl.tensor(0.8), wl.tensor(1.0)), 0.22314355, rtol=1e-6)
    assert F.binary_cross_entropy_with_logits(wl.tensor(1000.0), wl.tensor(0.0)).item() == 1000.0
    both = wl.asarray(np.stack([np.zeros_like(x), x], -1))
    np.testing.assert_allclose(
        F.cross_entropy(both, wl.asarray(y.astype(int))), F.binary_cross_entropy_with_logits(x, y), rtol=1e-10
    )
    with pytest.raises(ShapeError, match=r"weights of shape \(2, 4, 3\)"):
        F.binary_cross_entropy(p, y, np.ones((2, 4, 3)))


def test_certain_and_wrong_has_finite_loss_and_slope():
    value, slope = wl.value_and_grad(lambda p: F.binary_cross_entropy(p, wl.tensor([1.0, 0.0]), reduction="sum"))(
        wl.tensor([0.0, 0.0])
    )
    assert value.item() == 100.0
    assert np.isfinite(slope.numpy()).all()


def test_modules_of_classes():
    x, y = wl.asarray(LOGITS), wl.asarray(CLASSES)
    module = nn.CrossEntropyLoss(WEIGHT, label_smoothing=0.1)
    np.testing.assert_array_equal(module(x, y), F.cross_entropy(x, y, WEIGHT, label_smoothing=0.1))
    np.testing.assert_allclose(wl.jit(module)(x, y), module(x, y), rtol=1e-12)
    log_p = wl.log_softmax(x)
    np.testing.assert_allclose(nn.NLLLoss(WEIGHT)(log_p, y), F.cross_entropy(x, y, WEIGHT), rtol=1e-12)
    with pytest.raises(InputError, match="CrossEntropyLoss: reduction='avg'"):
        nn.CrossEntropyLoss(reduction="avg")


def test_a_batch_of_losses_by_vmap():
    x, y = wl.asarray(LOGITS), wl.tensor([[0, 4, 1], [2, 2, 1]])
    each = wl.vmap(F.cross_entropy)(x, y)
    np.testing.assert_allclose(each, [F.cross_entropy(a, b).item() for a, b in zip(x, y, strict=True)], rtol=1e-12)
