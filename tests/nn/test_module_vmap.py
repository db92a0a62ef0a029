"""Modules under vmap: many modules at once, or one module for many examples."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import TraceError


class Running(nn.Module):
    """A scale and a sum of what it has seen."""

    def __init__(self, scale=1.0):
        self.scale = nn.Parameter(scale)
        self.total = nn.Buffer(0.0)

    def forward(self, x):
        self.total = self.total + x
        return self.scale * self.total


class Resetting(Running):
    def forward(self, x):
        self.total = wl.tensor(-1.0)
        return self.scale * x


def stacked(*modules):
    return wl.tree.map(lambda *cells: wl.stack(cells), *modules)


def each(m, x):
    return m(x)


@pytest.mark.parametrize("transform", [lambda f: f, wl.jit])
def test_every_example_has_its_own_module(transform):
    many = stacked(Running(1.0), Running(2.0), Running(3.0))
    f = transform(lambda m, x: wl.vmap(each)(m, x))
    x = wl.tensor([1.0, 10.0, 100.0])
    assert f(many, x).tolist() == [1, 20, 300]
    assert f(many, x).tolist() == [2, 40, 600]
    assert many.total.tolist() == [2, 20, 200]
    many.scale = wl.tensor([0.0, 1.0, 1.0])
    assert f(many, x).tolist() == [0, 30, 300]
    assert type(many.total.value) is wl.Tensor


@pytest.mark.parametrize("transform", [lambda f: f, wl.jit])
def test_a_new_value_that_is_the_same_for_all(transform):
    many = stacked(Resetting(), Resetting())
    transform(lambda m, x: wl.vmap(each, in_axes=(0, None))(m, x))(many, wl.tensor(3.0))
    assert many.total.tolist() == [-1, -1]


def test_a_module_that_the_examples_share():
    one = Running(2.0)
    assert wl.vmap(lambda x: one.scale * x)(wl.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(TraceError, match=r"Buffer of shape \(\) .* differs from example to example"):
        wl.vmap(one)(wl.ones(3))
    assert one.total.item() == 0
    assert type(one.total.value) is wl.Tensor


@pytest.mark.parametrize("transform", [lambda f: f, wl.jit])
def test_modules_made_inside(transform):
    keys = wl.random.split(wl.random.key(0), 4)
    x = wl.ones(3)
    outputs = transform(wl.vmap(lambda key: nn.Linear(3, 2, key=key)(x)))(keys)
    for i in range(4):
        np.testing.assert_allclose(outputs[i], nn.Linear(3, 2, key=keys[i])(x), rtol=1e-6)


def test_imperative_gradients_of_stacked_modules():
    many = stacked(Running(1.0), Running(2.0))
    wl.vmap(each)(many, wl.tensor([3.0, 5.0])).sum().backward()
    assert many.scale.grad.tolist() == [3, 5]
    assert many.total.value._node is None
