"""Statements of the book and the notes about learning that belong to no single part of the package."""

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn

# What to write with wl, and the same with NumPy.
EXERCISES = {
    "identity": (lambda m: m.eye(3), np.eye(3)),
    "transpose": (lambda m: m.arange(9).reshape((3, 3)).T, np.arange(9).reshape(3, 3).T),
    "checkerboard": (lambda m: m.tile(m.asarray([[0, 1], [1, 0]]), (4, 4)), np.tile([[0, 1], [1, 0]], (4, 4))),
    "inner points": (lambda m: m.linspace(0, 1, 12)[1:-1], np.linspace(0, 1, 12)[1:-1]),
    "border": (
        lambda m: m.pad(m.zeros((3, 3)), 1, constant_values=1.0),
        np.pad(np.zeros((3, 3)), 1, constant_values=1),
    ),
    "largest": (lambda m: m.argmax(m.asarray([3, 9, 2])), np.argmax([3, 9, 2])),
    "reversed sums": (lambda m: m.cumsum(m.arange(5))[::-1], np.cumsum(np.arange(5))[::-1]),
    "sorted": (lambda m: m.sort(m.asarray([3.0, 1.0, 2.0])), np.sort([3.0, 1.0, 2.0])),
    "rolled": (lambda m: m.roll(m.arange(5), 2), np.roll(np.arange(5), 2)),
    "differences": (lambda m: m.diff(m.asarray([0, 2, 2, 3])), np.diff([0, 2, 2, 3])),
    "chosen": (lambda m: m.where(m.arange(5) > 2, -1, m.arange(5)), [0, 1, 2, -1, -1]),
    "norms": (lambda m: m.norm(m.asarray([[3.0, 4.0], [6.0, 8.0]]), axis=1), [5.0, 10.0]),
    "product": (lambda m: m.einsum("ij,jk->ik", m.ones((2, 3)), m.ones((3, 2))), np.full((2, 2), 3.0)),
    "outer": (lambda m: m.outer(m.arange(3), m.arange(2)), np.outer(np.arange(3), np.arange(2))),
}


@pytest.mark.book("2.80", name=("wl.arange", "wl.tile", "wl.where", "wl.roll", "wl.diff"))
@pytest.mark.parametrize("name", EXERCISES)
def test_exercises_in_array_programming(name):
    ours, expected = EXERCISES[name]
    np.testing.assert_allclose(np.asarray(ours(wl)), expected, rtol=1e-6)


@pytest.mark.book("5.66", name=("wl.nn.Sequential", "wl.nn.Module"))
def test_both_ways_to_build_a_model_give_the_same_outputs():
    class Net(nn.Module):
        def __init__(self):
            self.first, self.last = nn.Linear(3, 5), nn.Linear(5, 2)

        def forward(self, x):
            return self.last(wl.relu(self.first(x)))

    a = Net()
    b = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    names = {"first.weight": "0.weight", "first.bias": "0.bias", "last.weight": "2.weight", "last.bias": "2.bias"}
    b.load_state_dict({names[path]: value for path, value in a.state_dict().items()})
    x = wl.random.normal((7, 3), key=wl.random.key(0))
    np.testing.assert_array_equal(np.asarray(a(x)), np.asarray(b(x)))


@pytest.mark.book("5.69", name=("wl.tree.flatten", "wl.tree.map", "wl.nn.functional_call"))
def test_the_functional_style_with_parameters_as_a_tree():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    parameters = dict(model.named_parameters())
    leaves, structure = wl.tree.flatten(parameters)
    again = wl.tree.unflatten(structure, leaves)
    assert list(again) == list(parameters)
    x = wl.random.normal((5, 3), key=wl.random.key(0))

    def apply(parameters, x):
        return nn.functional_call(model, parameters, x)

    values = {path: p.value for path, p in parameters.items()}
    grads = wl.grad(lambda values: (apply(values, x) ** 2).sum())(values)
    assert wl.tree.structure(grads) == wl.tree.structure(values)
    moved = wl.tree.map(lambda w, g: w - 0.01 * g, values, grads)
    before = {path: np.asarray(value) for path, value in values.items()}
    assert float((apply(moved, x) ** 2).sum()) < float((apply(values, x) ** 2).sum())
    for path, parameter in model.named_parameters():  # nothing was changed in the model
        np.testing.assert_array_equal(np.asarray(parameter), before[path])


@pytest.mark.book("A3-56", name="wl.nn.Linear")
def test_rows_of_a_batch_are_single_examples_and_the_bias_sums_over_them():
    layer = nn.Linear(3, 2)
    X = wl.random.normal((6, 3), key=wl.random.key(1))
    Y = layer(X)
    for i in range(6):
        single = np.asarray(layer.weight).T @ np.asarray(X[i]) + np.asarray(layer.bias)
        np.testing.assert_allclose(single, np.asarray(Y[i]), rtol=1e-5)
    adjoint = wl.random.normal((6, 2), key=wl.random.key(2))
    grads = wl.grad(lambda layer: (layer(X) * adjoint).sum())(layer)
    np.testing.assert_allclose(np.asarray(grads["bias"]), np.asarray(adjoint).sum(0), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(grads["weight"]), np.asarray(X).T @ np.asarray(adjoint), rtol=1e-5)


@pytest.mark.book("A3-66b", name="wl.nn.Residual")
def test_a_residual_block_preserves_its_input_where_a_plain_one_has_to_learn_to():
    def block():
        return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4, init="zeros", bias_init="zeros"))

    x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    copy_loss = lambda model: wl.train.evaluate(model, "mse_loss", (x, x))["loss"]
    residual = nn.Sequential(*[nn.Residual(block()) for _ in range(8)])
    assert copy_loss(residual) == 0.0
    wl.random.seed(0)
    plain = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(8)], nn.Linear(4, 4))
    assert copy_loss(plain) > 0.5
    wl.train.fit(plain, "mse_loss", (x, x), epochs=30, lr=3e-3, progress=False)
    assert copy_loss(plain) > 0.05  # after as many epochs it still does not copy


@pytest.mark.book("B3-07", name=("wl.nn.inject_lora", "wl.nn.trainable_report"))
def test_few_parameters_are_enough_to_adapt_a_model():
    wl.random.seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    x = wl.random.normal((5, 64))
    before = np.asarray(model(x))
    model = nn.inject_lora(model, r=2)
    np.testing.assert_array_equal(np.asarray(model(x)), before)  # zero-shot: nothing has changed yet
    trained = model.num_parameters(trainable_only=True)
    report = nn.trainable_report(model)
    assert trained / model.num_parameters() < 0.1
    assert (report.trainable, report.total) == (trained, model.num_parameters())


def test_every_row_of_the_list_of_no_code_has_a_reason():
    from pathlib import Path

    lines = (Path(__file__).parent.parent / "docs" / "no_code.tsv").read_text().splitlines()[1:]
    assert all(len(line.split("\t")) == 2 and len(line.split("\t")[1]) > 20 for line in lines)
