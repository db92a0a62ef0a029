"""Every update rule against its formula in NumPy: ten steps, by grads, by backward() and under jit."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim

rng = np.random.default_rng(0)
STEPS = 10
A, B = rng.normal(size=(STEPS, 5, 3)), rng.normal(size=(STEPS, 5, 4))
W, C = rng.normal(size=(3, 4)), rng.normal(size=4)


def slope(w, c, t):
    """The gradients of mean((x w + c - y)^2), by hand."""
    e = 2 * (A[t] @ w + c - B[t]) / B[t].size
    return A[t].T @ e, e.sum(0)


def loss_of(params, x, y):
    w, c = params
    return ((x @ w + c - y) ** 2).mean()


def sgd(w, g, s, t, lr=0.1, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    g = (-g if maximize else g) + weight_decay * w
    if momentum:
        s["b"] = g if t == 1 else momentum * s["b"] + (1 - dampening) * g
        g = g + momentum * s["b"] if nesterov else s["b"]
    return w - lr * g


def adam(w, g, s, t, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False):
    g = (-g if maximize else g) + weight_decay * w
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g**2
    s["top"] = np.maximum(s.get("top", 0), s["v"])
    m = s["m"] / (1 - betas[0] ** t)
    v = (s["top"] if amsgrad else s["v"]) / (1 - betas[1] ** t)
    return w - lr * m / (np.sqrt(v) + eps)


def adamw(w, g, s, t, lr=1e-3, weight_decay=1e-2, **rest):
    return adam(w, g, s, t, lr, **rest) - lr * weight_decay * w


def rmsprop(w, g, s, t, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False):
    g = g + weight_decay * w
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g**2
    s["m"] = alpha * s.get("m", 0) + (1 - alpha) * g
    s["b"] = momentum * s.get("b", 0) + g / (np.sqrt(s["v"] - s["m"] ** 2 * centered) + eps)
    return w - lr * s["b"]


def adagrad(w, g, s, t, lr=1e-2, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10):
    g = g + weight_decay * w
    s["r"] = s.get("r", initial_accumulator_value) + g**2
    return w - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["r"]) + eps)


def heavy_ball(w, g, s, t, lr=0.1, momentum=0.9, weight_decay=0.0, decay="coupled"):
    kept = {"coupled": 1.0, "decoupled": 1 - lr * weight_decay, "independent": 1 - weight_decay}[decay]
    s["v"] = momentum * s.get("v", 0) - lr * (g + weight_decay * w * (decay == "coupled"))
    return kept * w + s["v"]


def lion(w, g, s, t, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
    m = s.get("m", np.zeros_like(w))
    s["m"] = betas[1] * m + (1 - betas[1]) * g
    return w - lr * (np.sign(betas[0] * m + (1 - betas[0]) * g) + weight_decay * w)


def lamb(w, g, s, t, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g**2
    u = s["m"] / (1 - betas[0] ** t) / (np.sqrt(s["v"] / (1 - betas[1] ** t)) + eps) + weight_decay * w
    return w - lr * np.linalg.norm(w) / np.linalg.norm(u) * u


def muon(w, g, s, t, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, adjust_lr_fn="match_rms_adamw"):
    if w.ndim < 2:
        return adamw(w, g, s, t, lr, weight_decay, betas=(0.9, 0.95))
    s["b"] = momentum * s.get("b", 0) + (1 - momentum) * g
    u = (1 - momentum) * g + momentum * s["b"] if nesterov else s["b"]
    left, values, right = np.linalg.svd(u, full_matrices=False)
    values = values / np.sqrt((values**2).sum())
    for _ in range(5):  # the polynomial acts on the singular values alone
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    scale = 0.2 * np.sqrt(max(w.shape)) if adjust_lr_fn != "original" else np.sqrt(max(1, w.shape[1] / w.shape[0]))
    return (1 - lr * weight_decay) * w - lr * scale * left @ np.diag(values) @ right


CASES = [
    (optim.HeavyBall, heavy_ball, {"lr": 0.1, "weight_decay": 0.1}),
    (optim.HeavyBall, heavy_ball, {"lr": 0.1, "weight_decay": 0.1, "decay": "decoupled"}),
    (optim.HeavyBall, heavy_ball, {"lr": 0.1, "weight_decay": 0.1, "decay": "independent"}),
    (optim.Lion, lion, {"lr": 0.01, "weight_decay": 0.1}),
    (optim.LAMB, lamb, {"lr": 0.05}),
    (optim.Muon, muon, {"lr": 0.05}),
    (optim.Muon, muon, {"lr": 0.05, "nesterov": False, "adjust_lr_fn": "original"}),
    (optim.SGD, sgd, {"lr": 0.1}),
    (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    (optim.Adam, adam, {}),
    (optim.Adam, adam, {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
    (optim.Adam, adam, {"lr": 0.05, "amsgrad": True, "maximize": True}),
    (optim.AdamW, adamw, {"lr": 0.05}),
    (optim.AdamW, adamw, {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
    (optim.RMSprop, rmsprop, {}),
    (optim.RMSprop, rmsprop, {"centered": True, "momentum": 0.5, "weight_decay": 0.1, "alpha": 0.9}),
    (optim.Adagrad, adagrad, {}),
    (optim.Adagrad, adagrad, {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
]


def by_gradients(params, optimizer, x, y):
    loss, grads = wl.value_and_grad(loss_of)(params, x, y)
    optimizer.step(grads)
    return loss


def by_backward(params, optimizer, x, y):
    optimizer.zero_grad()
    loss = loss_of(params, x, y)
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.parametrize("dtype", [wl.float32, wl.float64])
@pytest.mark.parametrize("style", ["grads", "backward", "jit"])
@pytest.mark.parametrize("make, rule, settings", CASES)
def test_ten_steps_follow_the_formula(make, rule, settings, style, dtype):
    params = [nn.Parameter(W, dtype), nn.Parameter(C, dtype)]
    optimizer = make(params, **settings)
    step = {"grads": by_gradients, "backward": by_backward, "jit": wl.jit(by_gradients)}[style]
    w, c, states = W, C, ({}, {})
    for t in range(STEPS):
        step(params, optimizer, wl.asarray(A[t], dtype=dtype), wl.asarray(B[t], dtype=dtype))
        slopes = slope(w, c, t)
        w, c = (rule(v, g, s, t + 1, **settings) for v, g, s in zip((w, c), slopes, states, strict=True))
    assert params[0].dtype == dtype
    tolerance = 1e-11 if dtype == wl.float64 else 2e-5
    np.testing.assert_allclose(params[0].numpy(), w, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(params[1].numpy(), c, rtol=tolerance, atol=tolerance)
    assert optimizer.count.item() == STEPS


def descend(optimizer, w, steps, f=lambda w: (w[0] ** 2).sum()):
    """The values of w on the way down."""
    seen = []
    for _ in range(steps):
        optimizer.step(wl.grad(f)([w]))
        seen.append(w.item())
    return seen


def one(value=1.0):
    return nn.Parameter(value, wl.float64)


@pytest.mark.book("2.71", "A3-44", name="wl.optim.SGD")
def test_heavy_ball():
    w = one()
    np.testing.assert_allclose(descend(optim.SGD([w], lr=0.1, momentum=0.9), w, 3), [0.8, 0.46, 0.062])
    a, b = one(), one()
    plain, without = optim.SGD([a], lr=0.1), optim.SGD([b], lr=0.1, momentum=0.0)
    assert descend(plain, a, 3) == descend(without, b, 3)


@pytest.mark.book("2.72", name="wl.optim.SGD")
def test_a_constant_gradient_reaches_the_limit_speed():
    w = one()
    seen = descend(optim.SGD([w], lr=0.1, momentum=0.5), w, 40, lambda w: 3.0 * w[0])
    np.testing.assert_allclose(seen[-1] - seen[-2], -0.1 * 3.0 / (1 - 0.5), rtol=1e-9)


@pytest.mark.book("A3-46", name="wl.optim.SGD")
def test_nesterov_holds_the_point_ahead():
    w = one()
    optimizer = optim.SGD([w], lr=0.1, momentum=0.9, nesterov=True)
    behind = []
    for _ in range(3):
        descend(optimizer, w, 1)
        momentum = optimizer.state_dict()["groups.0.momentum.0"].item()
        behind.append(w.item() + 0.1 * 0.9 * momentum)  # the notes' theta: w without its look ahead
    np.testing.assert_allclose(behind, [0.8, 0.496, 0.17792])


@pytest.mark.book("A3-51", name="wl.optim.Adagrad")
def test_adagrad_of_the_notes():
    w = one()
    np.testing.assert_allclose(descend(optim.Adagrad([w], lr=0.1), w, 3), [0.9, 0.8331035, 0.7804562], atol=1e-7)


@pytest.mark.book("A3-53", name="wl.optim.RMSprop")
def test_rmsprop_under_a_constant_gradient_takes_steps_of_the_rate():
    w = one()
    seen = descend(optim.RMSprop([w], lr=0.1, alpha=0.5), w, 60, lambda w: -7.0 * w[0])
    np.testing.assert_allclose(seen[-1] - seen[-2], 0.1, rtol=1e-6)


@pytest.mark.book("2.76", "A3-54", name="wl.optim.Adam")
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_the_first_step_of_adam_has_the_size_of_the_rate(scale):
    w = one(2.0)
    descend(optim.Adam([w], lr=0.25), w, 1, lambda w: scale * w[0])
    np.testing.assert_allclose(w.item(), 1.75, rtol=1e-4)


@pytest.mark.book("9-09", name=("wl.optim.AdamW", "wl.optim.Adam"))
def test_decoupled_decay_is_not_rescaled():
    a, b = one(), one()
    optim.Adam([a], lr=0.1, weight_decay=0.01).step([wl.tensor(0.0, wl.float64)])
    optim.AdamW([b], lr=0.1, weight_decay=0.1).step([wl.tensor(0.0, wl.float64)])
    np.testing.assert_allclose([a.item(), b.item()], [0.9, 0.99], rtol=1e-5)


@pytest.mark.book("9-08", name="wl.optim.SGD")
def test_weights_without_gradient_decay():
    w = one(3.0)
    optimizer = optim.SGD([w], lr=0.1, weight_decay=0.5)
    for _ in range(5):
        optimizer.step([wl.tensor(0.0, wl.float64)])
    np.testing.assert_allclose(w.item(), 3.0 * (1 - 0.05) ** 5)


def test_complex_parameters():
    z = nn.Parameter(wl.tensor([1 + 1j]))
    optimizer = optim.SGD([z], lr=0.25, momentum=0.5)
    optimizer.step(wl.grad(lambda z: wl.real(z[0] * wl.conj(z[0])).sum())([z]))
    np.testing.assert_allclose(z.numpy(), [0.5 + 0.5j], rtol=1e-6)
    for make in (
        optim.Adam,
        optim.RMSprop,
        optim.Adagrad,
        optim.Adadelta,
        optim.NAdam,
        optim.RAdam,
        optim.Adamax,
        optim.Lion,
        optim.Muon,
        optim.Adafactor,
        optim.LAMB,
        optim.Rprop,
    ):
        with pytest.raises(wl.errors.DTypeError, match="real parameters, received complex64"):
            make([z])


EVERY = [
    optim.SGD, optim.HeavyBall, optim.Nesterov, optim.Adagrad, optim.Adadelta, optim.RMSprop, optim.Adam, optim.AdamW,
    optim.NAdam, optim.RAdam, optim.Adamax, optim.Lion, optim.Muon, optim.Adafactor, optim.LAMB, optim.Rprop,
    optim.ASGD,
]  # fmt: skip


@pytest.mark.parametrize("make", EVERY)
def test_zero_size_and_zero_rank_parameters(make):
    empty, scalar = nn.Parameter(wl.zeros((0, 3))), nn.Parameter(1.0)
    make([empty, scalar], lr=0.1).step([wl.zeros((0, 3)), wl.tensor(1.0)])
    assert scalar.shape == ()
    assert scalar.item() < 1


@pytest.mark.parametrize("make", EVERY)
def test_every_rule_learns_saves_and_goes_on_to_the_same_bits(make):
    def run(params, optimizer, steps):
        for t in steps:
            by_gradients(params, optimizer, wl.asarray(A[t]), wl.asarray(B[t]))

    params, twins = ([nn.Parameter(W), nn.Parameter(C)] for _ in range(2))
    optimizer, other = make(params, lr=0.01), make(twins, lr=0.5)
    run(params, optimizer, range(5))
    for p, twin in zip(params, twins, strict=True):
        twin.assign(p.value)
    assert other.load_state_dict({k: v.numpy() for k, v in optimizer.state_dict().items()}) == ([], [])
    run(params, optimizer, range(5, 10))
    run(twins, other, range(5, 10))
    for p, twin in zip(params, twins, strict=True):
        np.testing.assert_array_equal(p.numpy(), twin.numpy())
    assert all(np.isfinite(rate.numpy()).all() for rate in optimizer.effective_lr().values())


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16])
@pytest.mark.parametrize("compiled", [False, True])
def test_small_steps_of_half_precision_add_up(dtype, compiled):
    w = nn.Parameter(wl.ones(2), dtype)
    optimizer = optim.Adam([w], lr=1e-5)

    def step(w, optimizer):
        optimizer.step([wl.tensor([1e-4, 1.0], dtype)])  # the first one's square is 0 in float16

    run = wl.jit(step) if compiled else step
    for _ in range(400):
        run(w, optimizer)
    assert w.dtype == dtype
    assert all(value.dtype != dtype for value in optimizer.state_dict().values())
    np.testing.assert_allclose(w.numpy().astype(float), 1 - 400e-5, atol=4e-3)  # a single step is below its precision
    np.testing.assert_allclose(optimizer.state_dict()["groups.0.master.0"], 1 - 400e-5, rtol=1e-3)
    w.assign(wl.zeros(2, dtype=dtype))  # from outside: the step starts from here
    run(w, optimizer)
    np.testing.assert_allclose(w.numpy().astype(float), -1e-5, rtol=1e-1)


@pytest.mark.book("2.75", name=("wl.optim.Adagrad", "wl.optim.RMSprop"))
@pytest.mark.parametrize("make", [optim.Adagrad, optim.RMSprop])
def test_adaptive_steps_do_not_depend_on_the_scale_of_a_coordinate(make):
    gradients = rng.normal(size=(10, 3))
    scales = np.array([1e-2, 1.0, 1e3])
    a, b = nn.Parameter(np.zeros(3)), nn.Parameter(np.zeros(3))
    for w, factor in ((a, 1.0), (b, scales)):
        optimizer = make([w], lr=0.1, eps=0.0)
        for g in gradients:
            optimizer.step([wl.asarray(g * factor)])
    np.testing.assert_allclose(a, b, rtol=1e-9)
    w = nn.Parameter(np.zeros(2))
    optim.Adagrad([w], lr=0.3).step([wl.tensor([-5.0, 0.01], wl.float64)])
    np.testing.assert_allclose(w, [0.3, -0.3], rtol=1e-6)


@pytest.mark.book("A3-52", name=("wl.optim.Adagrad", "wl.optim.Optimizer.effective_lr"))
def test_the_rate_of_adagrad_only_falls():
    w = nn.Parameter(np.zeros(4))
    optimizer = optim.Adagrad([w], lr=0.1)
    rates = []
    for _ in range(10):
        optimizer.step([wl.asarray(rng.normal(size=4))])
        rates.append(optimizer.effective_lr()["0"].numpy())
    assert (np.diff(rates, axis=0) < 0).all()
    assert optimizer.state_size() == 4
    average = optim.RMSprop([w], lr=0.1, alpha=0.5)
    for scale in (1.0, 1e-3, 1e-3, 1e-3):
        average.step([wl.full(4, scale, dtype=wl.float64)])
        rates.append(average.effective_lr()["0"].numpy())
    assert (rates[-1] > rates[-3]).all()  # what forgets can rise again


@pytest.mark.book("A3-53", name="wl.optim.Adadelta")
def test_adadelta_follows_the_mean_square():
    w = nn.Parameter(np.zeros(1))
    optimizer = optim.Adadelta([w], rho=0.5)
    for _ in range(60):
        optimizer.step([wl.tensor([3.0], wl.float64)])
    np.testing.assert_allclose(optimizer.state_dict()["groups.0.square.0"], 9.0)


@pytest.mark.book("A3-54", name="wl.optim.Adam")
def test_amsgrad_never_forgets_the_largest_square():
    w = nn.Parameter(np.zeros(3))
    optimizer = optim.Adam([w], betas=(0.9, 0.5), amsgrad=True)
    seen = []
    for t in range(12):
        optimizer.step([wl.asarray(rng.normal(size=3) / (1 + t))])
        seen.append(optimizer.state_dict()["groups.0.largest_square.0"].numpy())
    assert (np.diff(seen, axis=0) >= 0).all()


@pytest.mark.book("A3-54", name=("wl.optim.NAdam", "wl.optim.Adamax"))
@pytest.mark.parametrize("make", [optim.NAdam, optim.Adamax, optim.Lion])
def test_relatives_of_adam_do_not_see_the_scale_of_the_loss(make):
    paths = []
    for scale in (1.0, 1e4):
        w = nn.Parameter(np.ones(2))
        optimizer = make([w], lr=0.05, **({} if make is optim.Lion else {"eps": 1e-14}))
        for _ in range(12):
            optimizer.step([scale * wl.grad(lambda w: (w**4).sum())(w.value)])
        paths.append(w.numpy())
    np.testing.assert_allclose(paths[0], paths[1], rtol=1e-6)


def test_orthogonal_momentum():
    x = rng.normal(size=(6, 4))
    for steps in (5, 8):
        values = np.linalg.svd(optim.orthogonalize(wl.asarray(x), steps).numpy(), compute_uv=False)
        assert values.min() > 0.65
        assert values.max() < 1.25
    kernel, bias = nn.Parameter(rng.normal(size=(3, 3, 2, 5))), nn.Parameter(np.zeros(5))
    flat = nn.Parameter(kernel.numpy().reshape(18, 5))
    g = rng.normal(size=(3, 3, 2, 5))
    optim.Muon([kernel, bias]).step([wl.asarray(g), wl.zeros(5, dtype=wl.float64)])
    optim.Muon([flat]).step([wl.asarray(g.reshape(18, 5))])
    np.testing.assert_allclose(kernel.numpy().reshape(18, 5), flat.numpy(), rtol=1e-12)


def test_muon_leaves_a_group_to_adamw():
    body, head = nn.Parameter(W), nn.Parameter(W)
    twin = nn.Parameter(W)
    settings = {"lr": 0.01, "weight_decay": 0.1}
    groups = [{"params": {"body": body}}, {"params": {"head": head}, "use_muon": False}]
    optim.Muon(groups, **settings).step({"body": wl.asarray(A[0][:3] @ B[0][:3]), "head": wl.asarray(W)})
    optim.AdamW([twin], betas=(0.9, 0.95), **settings).step([wl.asarray(W)])
    np.testing.assert_allclose(head, twin, rtol=1e-12)
    assert not np.allclose(body, twin)


@pytest.mark.parametrize(
    "make, settings, message",
    [
        (optim.Adadelta, {"rho": 2.0}, "rho=2.0"),
        (optim.NAdam, {"momentum_decay": -1.0}, "momentum_decay=-1.0"),
        (optim.RAdam, {"betas": (0.9,)}, "betas="),
        (optim.Lion, {"betas": (0.9, 1.0)}, "betas=1.0"),
        (optim.Muon, {"momentum": 1.0}, "momentum=1.0"),
        (optim.Muon, {"ns_steps": 0}, "ns_steps=0"),
        (optim.Muon, {"adjust_lr_fn": "none"}, "adjust_lr_fn='none'"),
        (optim.Adafactor, {"eps": 1e-3}, "eps=0.001"),
        (optim.Adafactor, {"d": 0.5}, "d=0.5"),
        (optim.Adafactor, {"beta2_decay": 0.8}, "beta2_decay=0.8"),
        (optim.Rprop, {"etas": (1.5, 2.0)}, "etas=1.5"),
        (optim.Rprop, {"step_sizes": (1.0, 0.1)}, "step_sizes=1.0"),
        (optim.ASGD, {"alpha": -1.0}, "alpha=-1.0"),
        (optim.LAMB, {"eps": -1.0}, "eps=-1.0"),
    ],
)
def test_settings_out_of_range(make, settings, message):
    with pytest.raises(wl.errors.InputError, match=message):
        make([nn.Parameter(1.0)], **settings)
