"""Hooks on inputs and outputs."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.core.context import modules


@pytest.fixture
def model():
    return nn.Sequential(nn.Linear(3, 4), wl.tanh, nn.Linear(4, 2))


def test_hooks_see_activations(model):
    seen = []
    x = wl.ones((5, 3))
    with (
        model[0].register_forward_pre_hook(lambda module, args: seen.append(("in", module, args[0]))),
        model[0].register_forward_hook(lambda module, args, output: seen.append(("out", module, output))),
    ):
        y = model(x)
    (before, first, given), (after, second, activation) = seen
    assert (before, after) == ("in", "out")
    assert first is second is model[0]
    assert given is x
    np.testing.assert_array_equal(model[2](wl.tanh(activation)), y)
    model(x)
    assert len(seen) == 2


def test_hooks_may_replace_what_they_see(model):
    x = wl.ones((5, 3))
    plain = model(x)
    handle = model[0].register_forward_hook(lambda module, args, output: output * 0)
    np.testing.assert_array_equal(model(x), model[2](wl.zeros((5, 4))))
    handle.remove()
    handle.remove()
    np.testing.assert_array_equal(model(x), plain)
    with model.register_forward_pre_hook(lambda module, args: args[0] * 2):
        np.testing.assert_array_equal(model(x), model.forward(x * 2))
    with model.register_forward_pre_hook(lambda module, args: (args[0] * 2,)):
        np.testing.assert_array_equal(model(x), model.forward(x * 2))


def test_hooks_run_in_the_order_of_their_registration(model):
    order = []
    model.register_forward_hook(lambda *_: order.append(1))
    model.register_forward_hook(lambda *_: order.append(2))
    model(wl.ones(3))
    assert order == [1, 2]


def test_gradients_flow_through_replaced_activations(model):
    x = wl.ones((5, 3))
    loss = lambda model: model(x).sum()
    before = wl.grad(loss)(model)
    with model[2].register_forward_hook(lambda module, args, output: 3 * output):
        after = wl.grad(loss)(model)
    for path in before:
        np.testing.assert_allclose(after[path], 3 * before[path].numpy(), rtol=1e-5)


def test_jit_notices_hooks(model):
    x = wl.ones((5, 3))
    by_argument, by_closure = wl.jit(lambda m, x: m(x)), wl.jit(lambda x: model(x))
    plain = by_argument(model, x), by_closure(x)
    with model.register_forward_hook(lambda module, args, output: output + 1):
        np.testing.assert_allclose(by_argument(model, x), plain[0] + 1, rtol=1e-6)
        np.testing.assert_allclose(by_closure(x), plain[1] + 1, rtol=1e-6)
    np.testing.assert_array_equal(by_argument(model, x), plain[0])
    np.testing.assert_array_equal(by_closure(x), plain[1])


def test_an_exception_leaves_no_module_on_the_stack(model):
    def fail(*_):
        raise ValueError("stop")

    with model[0].register_forward_hook(fail), pytest.raises(ValueError, match="stop"):
        model(wl.ones(3))
    assert modules.called == []
    assert model._hooks == ()
