"""A frozen model answers as the model did, whatever becomes of it, and cannot be trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn

X = wl.random.normal((2, 8, 8, 3), key=wl.random.key(0))


def network() -> nn.Sequential:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5), nn.Conv2d(8, 4, 3))
    model.train()(X)  # running statistics
    return model


def test_a_frozen_model_answers_as_the_model_in_eval_mode() -> None:
    model = network()
    answer = wl.freeze(model)
    assert model.training
    assert not answer.training
    wanted = model.eval()(X)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(answer(X)), np.asarray(wanted), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.asarray(answer(X[:1])), np.asarray(wanted[:1]), rtol=1e-4, atol=1e-5)


def test_it_does_not_see_what_becomes_of_the_model() -> None:
    model = network()
    mine = np.ones((3, 3, 3, 8), np.float32)
    model[0].weight.assign(wl.asarray(mine))
    answer = wl.freeze(model)
    before = np.asarray(answer(X))
    mine *= 7
    optimizer = wl.optim.SGD(model, lr=0.1)

    @wl.jit
    def step(model: Any, optimizer: Any, x: Any) -> None:
        optimizer.step(wl.grad(lambda m: (m(x) ** 2).mean())(model))

    for _ in range(2):
        step(model, optimizer, X)
    model[4].weight = wl.zeros((3, 3, 8, 4))
    np.testing.assert_array_equal(np.asarray(answer(X)), before)
    again = np.asarray(wl.freeze(model)(X))
    assert not np.allclose(again, before)


def test_gradients_of_arguments_are_as_always() -> None:
    model = network()
    answer = wl.freeze(model)
    model.eval()
    got = wl.grad(lambda x: (answer(x) ** 2).sum())(X)
    wanted = wl.grad(lambda x: (model(x) ** 2).sum())(X)
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-3, atol=1e-4)


def test_it_cannot_be_trained() -> None:
    answer = wl.freeze(network())
    assert answer.eval() is answer
    assert answer.train(False) is answer
    with pytest.raises(wl.errors.ModuleError, match="a frozen Sequential has constants in place"):
        answer.train()
    for refused in (answer.parameters, answer.state_dict):
        with pytest.raises(wl.errors.ModuleError, match="freeze that again"):
            refused()
    with pytest.raises(wl.errors.WonderlandError):
        wl.optim.SGD(answer, lr=0.1)  # type: ignore[arg-type]
    with pytest.raises(wl.errors.InputError, match="freeze: a function is not a module"):
        wl.freeze(lambda x: x)  # type: ignore[arg-type]


def test_it_may_be_a_part_of_other_functions() -> None:
    model = network()
    answer = wl.freeze(model)

    @wl.jit
    def both(x: Any) -> Any:
        return answer(x) + answer(2 * x)

    model.eval()
    np.testing.assert_allclose(np.asarray(both(X)), np.asarray(model(X) + model(2 * X)), rtol=1e-3, atol=1e-4)
