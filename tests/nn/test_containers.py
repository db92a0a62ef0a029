"""Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, IndexOutOfRange, ModuleError, ShapeError


def test_sequential_composes():
    a, b = nn.Linear(3, 4), nn.Linear(4, 2)
    model = nn.Sequential(a, wl.relu, b)
    x = wl.random.normal((5, 3))
    np.testing.assert_array_equal(model(x), b(wl.relu(a(x))))
    assert len(model) == 3
    assert list(model) == [a, wl.relu, b]
    assert model[0] is a
    assert model[-1] is b
    assert [path for path, _ in model.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert nn.Sequential()(x) is x


def test_indexing_slicing_and_appending():
    model = nn.Sequential(nn.Linear(3, 4), wl.relu, nn.Linear(4, 2))
    front = model[:2]
    assert type(front) is nn.Sequential
    assert front[0] is model[0]
    assert model.append(wl.tanh) is model
    assert len(model) == 4
    assert len(front) == 2
    model[1] = wl.sin
    assert model[1] is wl.sin
    model[-1] = nn.Linear(2, 2)
    assert "3.weight" in dict(model.named_parameters())
    with pytest.raises(IndexOutOfRange, match="there is no entry 4 among 4"):
        model[4]
    with pytest.raises(ModuleError, match="an entry of type list cannot be called"):
        nn.Sequential([nn.Linear(1, 1)])


def test_more_than_ten_layers_keep_their_order():
    layers = [nn.Linear(1, 1) for _ in range(12)]
    model = nn.Sequential(*layers)
    assert list(model) == layers
    assert list(wl.tree.map(lambda c: c, model)) != layers
    assert [path for path, _ in model.named_children()] == [str(i) for i in range(12)]
    again = wl.tree.map(lambda c: c, model)
    x = wl.ones((1, 1))
    np.testing.assert_array_equal(again(x), model(x))
    np.testing.assert_array_equal(model.copy()(x), model(x))


def test_trees_keep_functions_between_layers():
    model = nn.Sequential(nn.Linear(3, 4), wl.relu, nn.Linear(4, 2))
    rebuilt = wl.tree.map(lambda c: c * 0 + 1, model)
    assert rebuilt[1] is wl.relu
    assert rebuilt(wl.ones(3)).tolist() == [17, 17]


@pytest.mark.book("1.06", name="wl.nn.Sequential")
def test_modules_that_do_not_fit_are_named():
    model = nn.Sequential(nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 6)), wl.relu)
    with pytest.raises(ShapeError) as caught:
        model(wl.ones((2, 3)))
    assert "in module: 0.1 (Linear)" in str(caught.value)
    assert "in_features=5" in str(caught.value)
    assert "(2, 4)" in str(caught.value)

    class Pair(nn.Module):
        def forward(self, x, y):
            return x + y

    with pytest.raises(ModuleError) as caught:
        nn.Sequential(nn.Linear(3, 4), Pair())(wl.ones((2, 3)))
    assert "layer 1, Pair(), takes (x, y), but layer 0 returns (float32[2, 4])" in str(caught.value)
    assert nn.Sequential(Pair(), wl.relu)(wl.ones(2), wl.ones(2)).tolist() == [2, 2]
    with pytest.raises(ModuleError, match=r"takes \(x, y\), but the arguments are"):
        nn.Sequential(Pair())(wl.ones(2))
    with pytest.raises(DTypeError, match="tuple"):
        nn.Sequential(lambda x: (x, x), nn.Linear(3, 4))(wl.ones(3))

    def broken(x):
        raise TypeError("a defect of its own")

    with pytest.raises(TypeError, match="a defect of its own"):
        nn.Sequential(broken)(wl.ones(3))


def test_module_list():
    blocks = nn.ModuleList([nn.Linear(2, 2)]).extend([nn.Linear(2, 3), wl.relu])
    assert len(blocks) == 3
    assert blocks.num_parameters() == 6 + 9
    assert repr(blocks) == (
        "ModuleList(\n"
        "  0: Linear(in_features=2, out_features=2, bias=True)\n"
        "  1: Linear(in_features=2, out_features=3, bias=True)\n"
        "  2: relu\n"
        ")"
    )
    with pytest.raises(ModuleError, match="no forward pass"):
        blocks(1)


def test_module_dict():
    heads = nn.ModuleDict({"b": nn.Linear(2, 2)})
    heads["a"] = nn.Linear(2, 3)
    assert list(heads) == ["b", "a"] == list(heads.keys())
    assert len(heads) == 2
    assert "a" in heads
    assert [path for path, _ in heads.named_parameters()] == ["b.weight", "b.bias", "a.weight", "a.bias"]
    heads["b"] = nn.Linear(2, 5)
    assert heads["b"].out_features == 5
    assert [m.out_features for m in heads.values()] == [5, 3]
    assert wl.tree.map(lambda c: c, heads)["a"].out_features == 3
    assert dict(heads.items())["a"] is heads["a"]
    with pytest.raises(ModuleError, match="there is no entry 'c'"):
        heads["c"]
    for key in ("keys", "a.b", "", 3, "training"):
        with pytest.raises(ModuleError, match="cannot be a key"):
            heads[key] = nn.Linear(1, 1)
    with pytest.raises(ModuleError, match="'c' of type int cannot be called"):
        heads["c"] = 3
