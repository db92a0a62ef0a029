"""Losses name labels that are wrong: what they got, and what to do; compiled, too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError

F = wl.nn.functional
SCORES = wl.log_softmax(wl.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0], [2.0, 1.0, 1.0], [0.0, 0.0, 0.5]]))
OF_CLASSES: dict[str, Callable[..., wl.Tensor]] = {
    "cross_entropy": F.cross_entropy,
    "nll_loss": F.nll_loss,
    "focal_loss": F.focal_loss,
    "multi_margin_loss": F.multi_margin_loss,
    "cross_entropy_with_probs": lambda x, y: F.cross_entropy_with_probs(wl.exp(x), y),
}
BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits", "sigmoid_focal_loss")


def refused(kind: type[Exception], name: str, said: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as error:
        call()
    text = str(error.value)
    assert text.startswith(f"{name}: ")
    assert said in text


@pytest.mark.parametrize("name", OF_CLASSES)
@pytest.mark.parametrize("label", [3, -1, 17])
def test_labels_out_of_range(name: str, label: int) -> None:
    loss = OF_CLASSES[name]
    y = wl.tensor([0, 1, label, 2])
    refused(IndexOutOfRange, name, f"a label is {label}, but the scores are for 3 classes", lambda: loss(SCORES, y))
    compiled = "below 0 or 3" if label in (3, -1) else "17"
    refused(IndexOutOfRange, name, f"a label is {compiled}, but the scores", lambda: wl.jit(loss)(SCORES, y))
    gradient = wl.jit(wl.grad(loss))
    refused(IndexOutOfRange, name, "labels from 0 to 2", lambda: gradient(SCORES, y))
    refused(IndexOutOfRange, name, "for 3 classes", lambda: wl.vmap(loss)(SCORES[:, None], y[:, None]))


def test_ignored_labels_are_no_mistake() -> None:
    y = wl.tensor([0, -100, 1, 2])
    kept = wl.tensor([0, 2, 3])
    np.testing.assert_allclose(F.cross_entropy(SCORES, y), F.cross_entropy(SCORES[kept], y[kept]), rtol=1e-6)
    refused(IndexOutOfRange, "cross_entropy", "-2", lambda: F.cross_entropy(SCORES, wl.tensor([-100, 0, -2, 1])))


def test_the_label_is_looked_up_as_before() -> None:
    """Against the definition, also for scores with several axes before that of the classes."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 5, 4)), rng.integers(0, 4, (2, 5))
    logs = x - np.log(np.exp(x).sum(-1, keepdims=True))
    wanted = -np.mean([logs[i, j, y[i, j]] for i in range(2) for j in range(5)])
    np.testing.assert_allclose(F.cross_entropy(wl.tensor(x), wl.tensor(y)), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", OF_CLASSES)
@pytest.mark.parametrize("compiled", [False, True])
def test_labels_of_the_wrong_kind_or_shape(name: str, compiled: bool) -> None:
    loss = wl.jit(OF_CLASSES[name]) if compiled else OF_CLASSES[name]
    refused(DTypeError, name, "y.astype(wl.int64)", lambda: loss(SCORES, wl.tensor([0.0, 1.0, 2.0, 1.0])))
    refused(DTypeError, name, "y.astype(wl.int64)", lambda: loss(SCORES, wl.tensor([True, False, True, True])))
    refused(ShapeError, name, "y[..., 0]", lambda: loss(SCORES, wl.tensor([[0], [1], [2], [1]])))
    refused(ShapeError, name, "y.argmax(-1)", lambda: loss(SCORES, wl.tensor([[0, 1], [1, 0], [0, 1], [1, 0]])))
    refused(ShapeError, name, "classes of shape (4,)", lambda: loss(SCORES, wl.tensor([0, 1, 2])))


def test_one_hot_rows_where_classes_are_needed() -> None:
    rows = wl.one_hot(wl.tensor([0, 1, 2, 1]), 3)
    for name in ("nll_loss", "multi_margin_loss"):
        refused(DTypeError, name, "y.argmax(-1)", partial(OF_CLASSES[name], SCORES, rows))
    both = [F.cross_entropy(SCORES, y) for y in (rows, wl.tensor([0, 1, 2, 1]))]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-6)


TEXTS = [["yes", "no", "no", "yes"], np.array(["yes", "no", "no", "yes"]), np.array(["yes", 1, None, 2], dtype=object)]


@pytest.mark.parametrize("name", [*OF_CLASSES, *BINARY, "mse_loss", "zero_one_loss"])
@pytest.mark.parametrize("labels", TEXTS, ids=["list", "array", "objects"])
def test_texts(name: str, labels: Any) -> None:
    loss = OF_CLASSES.get(name) or getattr(F, name)
    x = SCORES if name in OF_CLASSES else wl.full((4,), 0.5)
    refused(DTypeError, name, "np.unique(labels, return_inverse=True)", lambda: loss(x, labels))
    refused(InputError, name, "the targets are None", lambda: loss(x, None))


@pytest.mark.parametrize("name", BINARY)
def test_answers_other_than_yes_and_no(name: str) -> None:
    loss, p = getattr(F, name), wl.tensor([0.2, 0.9, 0.4])
    refused(InputError, name, "a target is 2.0", lambda: loss(p, wl.tensor([1, 2, 1])))
    refused(InputError, name, "(y + 1) / 2", lambda: loss(p, wl.tensor([-1.0, 1.0, 1.0])))
    assert np.isfinite(float(loss(p, wl.tensor([0.0, 0.3, 1.0]))))


def test_shapes_that_would_be_broadcast() -> None:
    column, row = wl.ones((4, 1)), wl.ones((4,))
    refused(ShapeError, "mse_loss", "targets[..., None]", lambda: F.mse_loss(column, row))
    refused(ShapeError, "mse_loss", "targets[..., 0]", lambda: F.mse_loss(row, column))
    columns = wl.full((4, 3), 0.5)
    refused(ShapeError, "binary_cross_entropy", "wl.one_hot(y, 3)", lambda: F.binary_cross_entropy(columns, row))


def test_a_label_of_a_later_batch_is_named_by_the_compiled_step() -> None:
    x, y = np.zeros((8, 2), np.float32), np.array([0, 1, 0, 1, 0, 1, 0, 9])
    batches = [(x[:4], y[:4]), (x[4:], y[4:])]
    refused(
        IndexOutOfRange,
        "cross_entropy",
        "a label is 9, but the scores are for 2 classes",
        lambda: wl.train.fit(wl.nn.Linear(2, 2), "cross_entropy", batches, epochs=1, progress=False),
    )
