"""What a supervised problem is, read from its data."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import models
from wonderland.errors import DTypeError, InputError, ShapeError

X = np.zeros((6, 4))
F = wl.nn.functional


@pytest.mark.book("4.01", "4.02", "B4-00", name="wl.models.Task")
def test_the_targets_tell_the_kind_the_sizes_and_the_loss():
    cases = [
        (np.linspace(0, 1, 6), models.Task("regression", 6, 4, 1), F.mse_loss, 1),
        (np.zeros((6, 3)), models.Task("regression", 6, 4, 3), F.mse_loss, 3),
        (np.array([0, 1, 1, 0, 1, 0]), models.Task("binary", 6, 4, 2), F.binary_cross_entropy_with_logits, 1),
        (np.array([True] * 6), models.Task("binary", 6, 4, 2), F.binary_cross_entropy_with_logits, 1),
        (np.array([0, 1, 2, 3, 0, 1]), models.Task("classification", 6, 4, 4), F.cross_entropy, 4),
    ]
    for y, task, loss, outputs in cases:
        assert models.Task.of(X, y) == task
        assert task.loss is loss
        assert task.outputs == outputs
    assert models.Task.of(wl.asarray(X), wl.asarray(np.arange(6)), num_classes=10).m == 10
    # the head and the loss fit each other
    task = models.Task.of(X, np.array([0, 1, 2, 3, 0, 1]))
    head = wl.nn.Linear(task.c, task.outputs, dtype=wl.float64)
    assert task.loss(head(wl.asarray(X)), wl.tensor([0, 1, 2, 3, 0, 1])).shape == ()


@pytest.mark.book("4.01", name="wl.models.Task.check_loss")
def test_a_regression_loss_of_classes_is_told():
    task = models.Task.of(X, np.array([0, 1, 2, 3, 0, 1]))
    for loss in (F.mse_loss, "l1_loss", wl.nn.MSELoss()):
        with pytest.warns(models.TaskWarning, match="class 2 as twice class 1"):
            task.check_loss(loss)
    task.check_loss(F.cross_entropy)
    models.Task.of(X, np.ones(6)).check_loss(F.mse_loss)


@pytest.mark.book("B4-00", name="wl.models.Task")
def test_data_of_another_problem_is_refused():
    with pytest.raises(InputError, match=r"from 0 to 5 for 5 classes"):
        models.Task.of(X, np.arange(6), num_classes=5)
    with pytest.raises(InputError, match="from -1"):
        models.Task.of(X, np.arange(6) - 1)
    with pytest.raises(InputError, match="not finite"):
        models.Task.of(X, np.full(6, np.nan))
    with pytest.raises(DTypeError, match="names"):
        models.Task.of(X, np.array(["a"] * 6))
    for x, y in ((X, np.zeros(5)), (X[:0], np.zeros(0)), (X[0], np.zeros(4)), (X, np.float64(1))):
        with pytest.raises(ShapeError):
            models.Task.of(x, y)
    task = models.Task.of(X, np.arange(6))
    with pytest.raises(ShapeError, match="c=4"):
        task.check(X[:, :3], np.arange(6))
    with pytest.raises(DTypeError, match="integers"):
        task.check(X, np.ones(6))
    task.check(X[:2], np.array([5, 0]))
