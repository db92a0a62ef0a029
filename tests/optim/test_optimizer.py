"""The base of optimizers: how gradients find parameters, groups, state, learning rates, jit."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim
from wonderland.errors import GradientError, InputError, ModuleError, ShapeError


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


X, Y = wl.random.normal((5, 3), key=wl.random.key(0)), wl.random.normal((5, 2), key=wl.random.key(1))


def loss_of(model, x, y):
    return nn.functional.mse_loss(model(x), y)


def step(model, optimizer, x, y):
    loss, grads = wl.value_and_grad(loss_of)(model, x, y)
    optimizer.step(grads)
    return loss


def state_of(model):
    return {path: value.numpy() for path, value in model.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize(
    "parameters",
    [
        lambda m: m,
        lambda m: m.parameters(),
        lambda m: iter(m.parameters()),
        lambda m: m.named_parameters(),
        lambda m: dict(m.named_parameters()),
        lambda m: [{"params": m}],
        lambda m: [{"params": m.parameters()}],
        lambda m: [{"params": m.named_parameters()[:1]}, {"params": m.named_parameters()[1:]}],
    ],
)
def test_ways_to_name_the_parameters(parameters):
    model = network()
    other = model.copy()
    optimizer = optim.Adam(parameters(model), lr=0.1)
    for _ in range(3):
        step(model, optimizer, X, Y)
    reference = optim.Adam(other, lr=0.1)
    for _ in range(3):
        step(other, reference, X, Y)
    assert same(state_of(model), state_of(other))


def test_jit_writes_parameters_and_state_back():
    eager, compiled = network(), None
    compiled = eager.copy()
    a, b = optim.Adam(eager, lr=0.1), optim.Adam(compiled, lr=0.1)
    fast = wl.jit(step)
    losses = [(step(eager, a, X, Y).item(), fast(compiled, b, X, Y).item()) for _ in range(5)]
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-5)
    assert fast.traces == 1
    for path, value in a.state_dict().items():
        np.testing.assert_allclose(value, b.state_dict()[path], rtol=1e-4, atol=1e-7)
    for path, value in state_of(eager).items():
        np.testing.assert_allclose(value, state_of(compiled)[path], rtol=1e-4, atol=1e-6)
    assert losses[-1][0] < losses[0][0]


def test_another_pair_takes_the_same_trace():
    fast = wl.jit(step)
    pairs = [(model := network(), optim.Adam(model, lr=0.1)) for _ in range(2)]
    copies = copy.deepcopy(pairs)
    for _ in range(3):
        for model, optimizer in pairs:
            fast(model, optimizer, X, Y)
    assert fast.traces == 1
    for (model, _), (twin, optimizer) in zip(pairs, copies, strict=True):
        for _ in range(3):
            step(twin, optimizer, X, Y)
        for path, value in state_of(model).items():
            np.testing.assert_allclose(value, state_of(twin)[path], rtol=1e-4, atol=1e-6)


def test_an_optimizer_in_a_closure():
    model = network()
    optimizer = optim.SGD(model, lr=0.1)

    @wl.jit
    def train(x, y):
        return step(model, optimizer, x, y)

    before = state_of(model)
    train(X, Y)
    assert not same(before, state_of(model))
    assert optimizer.count.item() == 1


def test_the_rate_changes_without_another_trace():
    model = network()
    optimizer = optim.SGD(model, lr=0.0)
    fast = wl.jit(step)
    before = state_of(model)
    fast(model, optimizer, X, Y)
    assert same(before, state_of(model))
    grads = wl.grad(loss_of)(model, X, Y)
    optimizer.lr = 0.5
    fast(model, optimizer, X, Y)
    np.testing.assert_allclose(state_of(model)["0.bias"], before["0.bias"] - 0.5 * grads["0.bias"].numpy(), rtol=1e-5)
    assert fast.traces == 1
    optimizer.param_groups[0]["lr"] = 0.25
    assert optimizer.lr.item() == 0.25
    fast(model, optimizer, X, Y)
    assert fast.traces == 1
    assert optimizer.lr.dtype == wl.float64


def test_a_schedule_inside_the_step():
    model = network()
    optimizer = optim.SGD(model, lr=1.0)

    @wl.jit
    def train(model, optimizer, x, y):
        optimizer.lr = 0.5 * wl.exp(-optimizer.count.astype(wl.float32))
        return step(model, optimizer, x, y)

    for i in range(3):
        before, grads = state_of(model), wl.grad(loss_of)(model, X, Y)
        train(model, optimizer, X, Y)
        rate = 0.5 * np.exp(-i)
        moved = (before["2.bias"] - state_of(model)["2.bias"]) / grads["2.bias"].numpy()
        np.testing.assert_allclose(moved, rate, rtol=1e-3)
        np.testing.assert_allclose(optimizer.lr.item(), rate, rtol=1e-6)
    assert train.traces == 1


def test_another_setting_is_another_trace():
    model = network()
    optimizer = optim.SGD(model, lr=0.1, momentum=0.5)
    fast = wl.jit(step)
    fast(model, optimizer, X, Y)
    optimizer.groups[0]["momentum"] = 0.0
    before, grads = state_of(model), wl.grad(loss_of)(model, X, Y)
    fast(model, optimizer, X, Y)
    np.testing.assert_allclose(state_of(model)["2.bias"], before["2.bias"] - 0.1 * grads["2.bias"].numpy(), rtol=1e-5)


def test_a_setting_that_needs_more_state():
    model = network()
    optimizer = optim.SGD(model, lr=0.1)
    optimizer.groups[0]["momentum"] = 0.9
    with pytest.raises(InputError, match="needs the state 'momentum', which was not made"):
        step(model, optimizer, X, Y)


def test_groups_have_settings_of_their_own():
    model = network()
    optimizer = optim.SGD([{"params": model[0]}, {"params": model[2], "lr": 0.0}], lr=0.1)
    before = state_of(model)
    body, head = wl.grad(lambda body, head: loss_of(nn.Sequential(body, wl.tanh, head), X, Y), argnums=(0, 1))(
        model[0], model[2]
    )
    optimizer.step((body, head))  # a tree with an entry per group
    after = state_of(model)
    assert not np.array_equal(before["0.weight"], after["0.weight"])
    assert np.array_equal(before["2.weight"], after["2.weight"])
    optimizer.lr = 0.2  # does not touch the rate that a group has of its own
    assert [group.lr.item() for group in optimizer.groups] == [0.2, 0.0]
    assert list(optimizer.state_dict()) == ["lr", "count", "groups.1.lr"]


def test_gradients_by_name_do_not_depend_on_the_order():
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    named = model.named_parameters()
    optimizer = optim.SGD([{"params": named[1:]}, {"params": named[:1], "lr": 0.0}], lr=1.0)
    before, grads = state_of(model), {"0.weight": wl.ones((3, 3)), "1.weight": 2 * wl.ones((3, 3))}
    optimizer.step(grads)
    np.testing.assert_array_equal(state_of(model)["1.weight"], before["1.weight"] - 2)
    np.testing.assert_array_equal(state_of(model)["0.weight"], before["0.weight"])


def test_a_list_takes_gradients_in_its_order():
    layers = nn.Sequential(*[nn.Linear(1, 1, bias=False) for _ in range(12)])  # "10.weight" sorts before "2.weight"
    optimizer = optim.SGD(layers.parameters(), lr=1.0)
    before = [p.item() for p in layers.parameters()]
    optimizer.step({path: wl.full((1, 1), float(i)) for i, (path, _) in enumerate(layers.named_parameters())})
    moved = [b - p.item() for b, p in zip(before, layers.parameters(), strict=True)]
    np.testing.assert_allclose(moved, range(12), atol=1e-5)


def test_frozen_and_shared_parameters():
    model = network().freeze("0")
    optimizer = optim.Adam(model, lr=0.1)
    before = state_of(model)
    step(model, optimizer, X, Y)
    assert np.array_equal(before["0.weight"], state_of(model)["0.weight"])
    assert not np.array_equal(before["2.weight"], state_of(model)["2.weight"])
    model.unfreeze()
    step(model, optimizer, X, Y)
    assert not np.array_equal(before["0.weight"], state_of(model)["0.weight"])
    layer = nn.Linear(2, 2)
    tied = nn.Sequential(layer, layer)
    assert len(optim.SGD(tied).groups[0].params) == 2


def test_backward_skips_what_has_no_gradient():
    model = network()
    optimizer = optim.SGD(model, lr=0.1)
    with pytest.raises(GradientError, match="no parameter has a gradient"):
        optimizer.step()
    before = state_of(model)
    model[2](wl.ones(4)).sum().backward()
    optimizer.step()
    assert np.array_equal(before["0.weight"], state_of(model)["0.weight"])
    optimizer.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_a_saved_run_goes_on_to_the_same_bits():
    model = network()
    optimizer = optim.Adam(model, lr=0.1, amsgrad=True)
    for _ in range(3):
        step(model, optimizer, X, Y)
    saved = (
        {k: v.numpy() for k, v in model.state_dict().items()},
        {k: v.numpy() for k, v in optimizer.state_dict().items()},
    )
    fresh = network()
    other = optim.Adam(fresh, lr=0.9, amsgrad=True)
    fresh.load_state_dict(saved[0])
    assert other.load_state_dict(saved[1]) == ([], [])
    assert other.lr.item() == 0.1
    for _ in range(3):
        step(model, optimizer, X, Y)
        step(fresh, other, X, Y)
    assert same(state_of(model), state_of(fresh))
    with pytest.raises(ModuleError, match=r"groups.0.largest_square.0.weight: the module has no such"):
        optim.Adam(network()).load_state_dict(saved[1])
    twin_model, twin = copy.deepcopy((model, optimizer))
    step(model, optimizer, X, Y)
    step(twin_model, twin, X, Y)
    assert same(state_of(model), state_of(twin_model))


def test_training_reduces_the_loss_of_a_whole_model():
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    x = wl.random.normal((64, 2))
    y = (x[:, 0] * x[:, 1] > 0).astype(wl.int64)
    optimizer = optim.Adam(model, lr=0.05)

    @wl.jit
    def train(model, optimizer, x, y):
        loss, grads = wl.value_and_grad(lambda m, x, y: nn.functional.cross_entropy(m(x), y))(model, x, y)
        optimizer.step(grads)
        return loss

    for _ in range(200):
        train(model, optimizer, x, y)
    assert (model(x).argmax(axis=-1) == y).astype(wl.float32).mean().item() > 0.95


def test_bad_input():
    model = network()
    with pytest.raises(InputError, match="no parameters"):
        optim.SGD([])
    with pytest.raises(InputError, match="no parameters"):
        optim.SGD(nn.ReLU())
    with pytest.raises(InputError, match="a Tensor is not a parameter"):
        optim.SGD([wl.ones(3)])
    with pytest.raises(InputError, match="lr=-1"):
        optim.SGD(model, lr=-1)
    with pytest.raises(InputError, match="lr='fast' is not a real number"):
        optim.SGD(model, lr="fast")
    with pytest.raises(InputError, match=r"betas=1\.0"):
        optim.Adam(model, betas=(0.9, 1.0))
    with pytest.raises(InputError, match=r"betas=0.9\."):
        optim.Adam(model, betas=0.9)
    with pytest.raises(InputError, match="eps=-1"):
        optim.Adam(model, eps=-1)
    with pytest.raises(InputError, match=r"nesterov with momentum=0\.0"):
        optim.SGD(model, nesterov=True)
    with pytest.raises(InputError, match="setting 'beta'"):
        optim.Adam([{"params": model, "beta": 0.9}])
    with pytest.raises(InputError, match="in two groups"):
        optim.SGD([{"params": model}, {"params": model[0]}])
    with pytest.raises(ModuleError, match="has no weight"):
        optim.SGD(nn.LazyLinear(3))
    with pytest.raises(InputError, match="no setting 'rate'"):
        optim.SGD(model).groups[0]["rate"] = 1.0
    with pytest.raises(ModuleError, match="has no update rule"):
        optim.Optimizer(model, 0.1).step(wl.grad(loss_of)(model, X, Y))


def test_gradients_that_do_not_belong():
    model = network()
    grads = wl.grad(loss_of)(model, X, Y)
    optimizer = optim.SGD(model[0])
    with pytest.raises(GradientError, match="there is none for 'weight', 'bias'"):
        optimizer.step(grads)
    with pytest.raises(ShapeError, match=r"gradient '0.weight' is float32\[3\], its parameter float32\[3, 4\]"):
        optim.SGD(model).step({**grads, "0.weight": wl.ones(3)})
    with pytest.raises(GradientError, match=r"received gradients for '0\.bias', '0\.weight'"):
        optim.SGD(model.parameters()).step({k: g for k, g in grads.items() if k.startswith("0")})
    before = state_of(model)
    with pytest.raises(ShapeError):
        optim.SGD(model).step({**grads, "2.bias": wl.ones(7)})
    assert same(before, state_of(model))  # nothing has moved


def test_it_prints_its_settings():
    model = network()
    assert repr(optim.SGD(model, lr=0.1)) == (
        "SGD(lr=0.1, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False, parameters=4)"
    )
    two = optim.SGD([{"params": model[0]}, {"params": model[2], "lr": 1e-4}], lr=0.1)
    assert repr(two).count("Group(") == 2
