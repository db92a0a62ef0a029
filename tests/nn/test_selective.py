"""Systems that depend on what they read: selective scans, Mamba blocks, S4 and S5 beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

RNG = np.random.default_rng(0)
METHODS = ("mamba", "zoh", "bilinear", "euler")


def numbers(*shape: int, dtype: type = np.float64) -> wl.Tensor:
    return wl.tensor(RNG.normal(size=shape).astype(dtype))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, x)


# --- steps


@pytest.mark.book("13.67", name="wl.nn.discretize")
def test_discretizations() -> None:
    delta, A, B, x = 0.3, np.array([-1.0, -2.5, 0.0]), np.array([1.0, 2.0, 3.0]), 1.7
    s = np.array([0.4, -0.2, 0.1])
    # an input that holds: the solution of ds/dt = A s + B x after delta, by many small steps
    fine, n = s, 100_000
    for _ in range(n):
        fine = fine + delta / n * (A * fine + B * x)
    decay, scaled = nn.discretize(delta, A, B)
    np.testing.assert_allclose(decay * s + scaled * x, fine, rtol=1e-5)
    np.testing.assert_allclose(decay[:2], np.exp(delta * A[:2]), rtol=1e-14)
    np.testing.assert_allclose(scaled[2], delta * 3.0)  # the limit for A = 0
    implicit, into = nn.discretize(delta, A, B, "bilinear")
    new = np.asarray(implicit * s + into * x)
    np.testing.assert_allclose(new, s + delta * (A * (s + new) / 2 + B * x), atol=1e-14)
    np.testing.assert_allclose(nn.discretize(delta, A, B, "euler")[0], 1 + delta * A)
    mixed = nn.discretize(delta, A, B, "mamba")
    np.testing.assert_allclose(mixed[0], np.exp(delta * A))
    np.testing.assert_allclose(mixed[1], delta * B)
    # matrices: the same, where they are diagonal
    for method in METHODS:
        dense = nn.discretize_matrix(delta, np.diag(A), B[:, None], method)
        for one, other in zip(nn.discretize(delta, A, B, method), dense, strict=True):
            wide = np.asarray(other)
            np.testing.assert_allclose(one, wide[:, 0] if wide.shape == (3, 1) else np.diag(wide), atol=1e-14)
    # steps that depend on the input, softplus of anything: below 1 wherever A is negative
    steps = wl.softplus(wl.tensor(np.linspace(-30, 30, 50)))[:, None]
    for method in ("mamba", "zoh", "bilinear"):
        size = np.abs(np.asarray(nn.discretize(steps, A[:2], 1.0, method)[0]))
        assert (size < 1).all(), method
    assert np.abs(np.asarray(nn.discretize(steps, A[:2], 1.0, "euler")[0])).max() > 1
    assert np.isfinite(np.asarray(wl.grad(lambda A: wl.sum(nn.discretize(delta, A)[1]))(wl.tensor(A)))).all()
    with pytest.raises(InputError, match="method='rk4'"):
        nn.discretize(delta, A, B, "rk4")
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        nn.discretize_matrix(delta, A, B[:, None])


# --- S4, S4D, S5


def long_layers(dtype: str = "float32") -> dict[str, Any]:
    key = wl.random.key(1)
    return {
        "s4": nn.S4(4, 8, dtype=dtype, key=key),
        "s4d legs": nn.S4D(4, 5, dtype=dtype, key=key),
        "s4d lin": nn.S4D(4, 5, init="lin", method="bilinear", dtype=dtype, key=key),
        "s4d inv": nn.S4D(4, 5, init="inv", dtype=dtype, key=key),
        "s5": nn.S5(4, 6, 4, blocks=2, dtype=dtype, key=key),
    }


@pytest.mark.book("13.38", "13.50", name="wl.nn.S4")
@pytest.mark.parametrize("name", [*long_layers()])
def test_modes_of_long_layers_agree(name: str) -> None:
    layer, x = long_layers("float64")[name], numbers(2, 11, 4)
    gaps = RNG.random((2, 11)) > 0.3
    wanted, masked = np.asarray(layer(x)), np.asarray(layer(x, token_mask=gaps))
    gradient = wl.grad(lambda layer, mode: wl.sum(layer(x, mode=mode) ** 2))
    slopes = gradient(layer, "recurrence")
    for mode in ("closed", "convolution", *(["scan"] if name != "s4" else [])):
        np.testing.assert_allclose(layer(x, mode=mode), wanted, atol=1e-11)
        np.testing.assert_allclose(layer(x, token_mask=gaps, mode=mode), masked, atol=1e-11)
        for path, slope in gradient(layer, mode).items():
            np.testing.assert_allclose(slope, slopes[path], rtol=1e-7, atol=1e-9, err_msg=f"{mode} {path}")
    if name == "s4":
        with pytest.raises(InputError, match="mode='scan' would multiply"):
            layer(x, mode="scan")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["s4", "s4d legs", "s5"])
def test_long_layers_keep_every_promise(name: str, compiled: bool) -> None:
    nn.assert_sequence_layer(long_layers()[name], numbers(3, 6, 4, dtype=np.float32), compiled=compiled)


@pytest.mark.book("13.38", name="wl.nn.S4")
def test_s4_is_hippo_in_bilinear_steps() -> None:
    layer = nn.S4(1, 8, dtype="float64", key=wl.random.key(0))
    A, B = (np.asarray(part) for part in nn.hippo_legs(8, dtype="float64"))
    V = np.asarray(nn.hippo_normal(8, dtype="float64").V)
    C = (np.asarray(layer.C_re) + 1j * np.asarray(layer.C_im)) @ V.conj().T
    assert np.abs(C.imag).max() < 1e-12
    step = float(np.exp(np.asarray(layer.log_step)[0]))
    stepped = nn.discretize_matrix(step, A, B[:, None], "bilinear")
    same = nn.LinearSSM.from_matrices(*stepped, C.real, np.asarray(layer.D)[None])
    x = numbers(1, 100, 1)
    np.testing.assert_allclose(layer(x), same(x, mode="recurrence"), atol=1e-10)
    assert layer.rule(100) == "convolution"
    # a channel is a system of its own, and S5 is one for all
    x = numbers(6, 3)
    one = np.asarray(wl.jacobian(nn.S4(3, 4, dtype="float64"))(x))
    many = np.asarray(wl.jacobian(nn.S5(3, 4, 3, dtype="float64"))(x))
    off = ~np.eye(3, dtype=bool)
    assert (np.moveaxis(one, 2, 1)[..., off] == 0).all()
    assert np.abs(np.moveaxis(many, 2, 1)[0, 0][off]).min() > 0


def test_numbers_of_parameters_and_settings() -> None:
    assert nn.S4(8, 16).num_parameters() == 8 * 8 * 16 + 2 * 8
    assert nn.S4D(8, 32).num_parameters() == 4 * 8 * 32 + 2 * 8
    assert nn.S5(8, 32, 5).num_parameters() == 3 * 32 + 2 * 32 * 8 + 2 * 5 * 32 + 5 * 8
    steps = np.exp(np.asarray(nn.S4D(1000, 1, step_min=0.01, step_max=0.1).log_step))
    assert steps.min() >= 0.0099
    assert steps.max() <= 0.101
    for broken, message in (
        (lambda: nn.S4D(4, init="random"), "init='random'"),
        (lambda: nn.S5(4, 5, 4, blocks=2), "5 states in 2 blocks"),
        (lambda: nn.S4(4, step_min=0.0), "steps from 0.0"),
        (lambda: nn.S4D(4, method="rk4"), "method='rk4'"),
        (lambda: nn.SelectiveSSM(4, step_max=-1.0), "steps from"),
        (lambda: nn.Mamba2Block(8, 3), "16 units in 3 heads"),
        (lambda: nn.Mamba2Block(8, 4, mode="scan"), "mode='scan'"),
    ):
        with pytest.raises(InputError, match=message):
            broken()


@pytest.mark.book("13.52", name="wl.nn.S4")
def test_no_value_of_the_parameters_lets_a_state_grow() -> None:
    for layer in long_layers("float64").values():
        for low, high in ((-30.0, -5.0), (0.0, 4.0)):
            layer.log_rate = wl.tensor(RNG.uniform(low, high, layer.log_rate.shape))
            x = wl.concat([numbers(1, 5, 4), wl.zeros((1, 500, 4), dtype="float64")], axis=1)
            _, cache = wl.jit(lambda layer, x: layer.run(x, layer.start(1), None))(layer, x)
            _, early = wl.jit(lambda layer, x: layer.run(x, layer.start(1), None))(layer, x[:, :5])
            assert float(wl.max(wl.abs(cache["s"]))) <= float(wl.max(wl.abs(early["s"]))) * 40 + 1e-12


# --- selective scans


def selective(b: int = 2, t: int = 6, d: int = 3, n: int = 4) -> Any:
    return [
        numbers(b, t, d), wl.softplus(numbers(b, t, d)), -wl.exp(numbers(d, n)), numbers(b, t, n), numbers(b, t, n),
        numbers(d), numbers(b, d, n),
    ]  # fmt: skip


@pytest.mark.book("13.66", "13.68", name="wl.nn.selective_scan")
@pytest.mark.parametrize("method", METHODS)
def test_a_selective_scan_is_its_loop(method: str) -> None:
    x, delta, A, B, C, D, s = (np.asarray(part) for part in selective())
    y, last = nn.selective_scan(x, delta, A, B, C, D, s, method=method)
    for i in range(6):
        decay, scaled = nn.discretize(delta[:, i, :, None], A, B[:, i, None], method)
        s = np.asarray(decay) * s + np.asarray(scaled) * x[:, i, :, None]
        np.testing.assert_allclose(y[:, i], np.einsum("bdn,bn->bd", s, C[:, i]) + D * x[:, i], atol=1e-12)
    np.testing.assert_allclose(last, s, atol=1e-12)


@pytest.mark.book("13.68", name="wl.nn.SelectiveSSM")
def test_the_scan_is_associative_though_decays_vary_and_there_is_no_convolution() -> None:
    parts = selective(t=13)
    for one, other in zip(nn.selective_scan(*parts), nn.selective_scan(*parts, mode="scan"), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    small = [part[:, :4] if part.ndim == 3 and part.shape[1] == 13 else part for part in parts]
    for mode in ("loop", "scan"):
        wl.check_grads(lambda *args, mode=mode: nn.selective_scan(*args, mode=mode), tuple(small))
    layer, x = nn.SelectiveSSM(5, 3, dtype="float64"), numbers(2, 9, 5)
    np.testing.assert_allclose(layer(x, mode="scan"), layer(x, mode="loop"), atol=1e-13)
    assert layer.mode == "loop"
    for mode in ("convolution", "closed"):
        with pytest.raises(InputError, match="depends on what it reads"):
            layer(x, mode=mode)
        with pytest.raises(InputError, match="depends on what it reads"):
            nn.SelectiveSSM(5, mode=mode)
    with pytest.raises(InputError, match="has no kernel"):
        nn.selective_scan(*parts, mode="convolution")
    with pytest.raises(ShapeError, match="x, delta, A, B, C"):
        nn.selective_scan(parts[0], parts[1], parts[2], parts[4][:, 1:], parts[4])
    with pytest.raises(ShapeError, match="a start of shape"):
        nn.selective_scan(parts[0], parts[1], parts[2], parts[3], parts[4], start=wl.zeros((1, 3, 4)))


@pytest.mark.book("13.66", "13.67", name="wl.nn.SelectiveSSM")
def test_constant_projections_give_a_diagonal_system() -> None:
    d, n = 3, 2
    layer, x = nn.SelectiveSSM(d, n, bias=True, dtype="float64", key=wl.random.key(0)), numbers(2, 20, d)
    layer.project.weight = wl.zeros_like(layer.project.weight)
    delta, B, C = (np.asarray(part)[0, 0] for part in layer.selected(x))
    decay = np.exp(delta[:, None] * -np.exp(np.asarray(layer.A_log)))
    eye = np.eye(d)
    fixed = nn.DiagonalSSM.from_eigenvalues(
        decay.reshape(-1),
        np.einsum("dc,n->dnc", eye * delta, B).reshape(d * n, d),
        np.einsum("od,n->odn", eye, C).reshape(d, d * n),
        np.diag(np.asarray(layer.D)),
    )
    np.testing.assert_allclose(layer(x), fixed(x), atol=1e-12)
    assert nn.is_time_invariant(layer, x)
    # the plain linear A(x) exceeds 1 and its states grow; the exponential of a negative product never does
    wild = numbers(1, 200, 1) * 3
    grown = nn.functional.linear_recurrence(wild * 1.2, wild, axis=1)
    assert float(wl.max(wl.abs(grown))) > 1e6
    tame, _ = nn.selective_scan(
        wild, wl.softplus(wild * 1.2), -wl.ones((1, 1)), wl.ones((1, 200, 1)), wl.ones((1, 200, 1))
    )
    assert float(wl.max(wl.abs(tame))) < 100
    layer = nn.SelectiveSSM(32, 16)
    assert layer.num_parameters() == 32 * (2 + 32) + 3 * 32 + 32 * 16 + 32
    np.testing.assert_allclose(-np.exp(np.asarray(layer.A_log))[5], -np.arange(1.0, 17), rtol=1e-6)
    steps = np.log1p(np.exp(np.asarray(layer.step_size.bias)))
    assert steps.min() > 0.0009
    assert steps.max() < 0.11


@pytest.mark.book("13.65", name="wl.nn.is_time_invariant")
def test_time_invariance() -> None:
    x, key = numbers(2, 12, 4), wl.random.key(0)
    kinds = {
        nn.LinearSSM(4, 5, 3, dtype="float64", key=key): True,
        nn.LRU(4, 5, 3, dtype="float64", key=key): True,
        nn.S5(4, 5, 3, dtype="float64", key=key): True,
        nn.S4(4, 4, dtype="float64", key=key): True,
        nn.CausalDepthwiseConv(4, 3, bias=False, dtype="float64", key=key): True,
        nn.SelectiveSSM(4, 5, dtype="float64", key=key): False,
        nn.MambaBlock(4, dtype="float64", key=key): False,
    }
    for layer, wanted in kinds.items():
        assert nn.is_time_invariant(layer, x, tolerance=1e-9) is wanted, layer
    assert nn.shift_error(nn.LRU(4, 5, 3, dtype="float64"), x, shift=5) < 1e-13
    clock = lambda x: x * wl.arange(x.shape[-2])[:, None]  # depends on the time itself
    assert nn.shift_error(clock, x) > 0.1
    assert not nn.is_time_invariant(clock, x)
    # what a selective layer does with a token depends on what the token is, and not on when it comes
    layer = nn.SelectiveSSM(4, 5, dtype="float64", key=key)
    assert nn.shift_error(layer, x) < 1e-12
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        nn.shift_error(layer, wl.ones(3))


@pytest.mark.book("13.69", name="wl.nn.selective_scan")
def test_a_gated_rnn_is_a_selective_system_of_one_number() -> None:
    z, x = RNG.normal(size=(2, 9, 3)) * 3, RNG.normal(size=(2, 9, 3))
    np.testing.assert_allclose(np.exp(-softplus(z)), 1 - 1 / (1 + np.exp(-z)), atol=5e-16)
    one = np.ones((2, 9, 1))
    y, _ = nn.selective_scan(x, wl.softplus(wl.tensor(z)), -np.ones((3, 1)), one, one, method="zoh")
    s, gate = np.zeros((2, 3)), 1 / (1 + np.exp(-z))
    for i in range(9):
        s = (1 - gate[:, i]) * s + gate[:, i] * x[:, i]
        np.testing.assert_allclose(y[:, i], s, atol=1e-14)


@pytest.mark.book("13.64", name="wl.nn.ssd")
def test_linear_attention_without_denominator_is_such_a_system() -> None:
    """A = I, C the feature map of the query: phi(q_i)^T sum of phi(k_j) v_j^T, by the same scan."""
    phi = lambda u: np.where(u > 0, u + 1, np.exp(u))
    q, k, v = phi(RNG.normal(size=(2, 9, 4))), phi(RNG.normal(size=(2, 9, 4))), RNG.normal(size=(2, 9, 3))
    S, wanted = np.zeros((2, 4, 3)), []
    for i in range(9):
        S = S + np.einsum("bk,bv->bkv", k[:, i], v[:, i])
        wanted.append(np.einsum("bk,bkv->bv", q[:, i], S))
    still = np.zeros((3, 4))  # no decay, and steps of 1
    y, state = nn.selective_scan(v, np.ones_like(v), still, k, q, method="euler")
    np.testing.assert_allclose(y, np.stack(wanted, axis=1), atol=1e-12)
    np.testing.assert_allclose(wl.swapaxes(state, 1, 2), S, atol=1e-12)
    one_head = [part[:, :, None] for part in (v, k, q)]
    y, state = nn.ssd(one_head[0], np.ones((2, 9, 1)), np.zeros(1), one_head[1], one_head[2], chunk=4)
    np.testing.assert_allclose(y[:, :, 0], np.stack(wanted, axis=1), atol=1e-12)
    # the states themselves, by the recurrence that all of them share
    states = nn.functional.linear_recurrence(1.0, k[..., None] * v[:, :, None], axis=1)
    np.testing.assert_allclose(np.einsum("btk,btkv->btv", q, np.asarray(states)), np.stack(wanted, axis=1), atol=1e-12)


# --- Mamba


@pytest.mark.book("13.70", name="wl.nn.MambaBlock")
@pytest.mark.parametrize("activation", ["silu", "sigmoid"])
def test_a_mamba_block_is_its_figure(activation: str) -> None:
    e, k, n = 3, 4, 2
    block = nn.MambaBlock(e, 2, k, n, activation=activation, dtype="float64", key=wl.random.key(0))
    x = RNG.normal(size=(7, e))
    sigma = lambda u: (u if activation == "silu" else 1.0) / (1 + np.exp(-u))
    first, gate = np.split(x @ np.asarray(block.input.weight), 2, axis=-1)
    padded = np.concatenate([np.zeros((k - 1, 6)), first])
    weight = np.asarray(block.conv.weight)[:, 0]
    inner = sigma(np.stack([(padded[i : i + k] * weight).sum(0) for i in range(7)]) + np.asarray(block.conv.bias))
    ssm = block.ssm
    chosen = inner @ np.asarray(ssm.project.weight)
    delta = softplus(chosen[:, :1] @ np.asarray(ssm.step_size.weight) + np.asarray(ssm.step_size.bias))
    A, s, out = -np.exp(np.asarray(ssm.A_log)), np.zeros((6, n)), []
    for i in range(7):
        s = np.exp(delta[i, :, None] * A) * s + (delta[i] * inner[i])[:, None] * chosen[i, 1 : 1 + n]
        out.append(s @ chosen[i, 1 + n :] + np.asarray(ssm.D) * inner[i])
    wanted = (np.stack(out) * sigma(gate)) @ np.asarray(block.output.weight)
    np.testing.assert_allclose(block(x), wanted, atol=1e-13)
    d, r = 6, 1
    assert block.num_parameters() == 2 * e * d + (k + 1) * d + d * (r + 2 * n) + (r + 1) * d + d * n + d + d * e


@pytest.mark.book("13.70", name="wl.nn.MambaBlock")
def test_a_step_keeps_the_window_of_the_convolution_and_the_state() -> None:
    block = nn.MambaBlock(4, 2, conv=3, state=5)
    cache = block.new_cache(2)
    assert {name: value.shape for name, value in cache.state.items()} == {"window": (2, 2, 8), "s": (2, 8, 5)}
    x = numbers(2, 6, 4, dtype=np.float32)
    _, cache = block.extend(x, cache)
    kept = np.asarray(block.input(x))[:, -2:, :8]
    np.testing.assert_allclose(cache.state["window"], kept, atol=1e-6)
    # a token far back is seen through the state alone, one beyond the present by nothing
    nn.assert_causal(nn.CausalDepthwiseConv(4, 3), x)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "layer",
    [
        nn.SelectiveSSM(4, 3, rank=2),
        nn.SelectiveSSM(4, 3, mode="scan", method="zoh"),
        nn.CausalDepthwiseConv(4, 3),
        nn.CausalDepthwiseConv(4, 1, bias=False),
        nn.MambaBlock(4, 2, state=3),
        nn.Mamba2Block(4, heads=4, state=3, groups=2, chunk=4),
        nn.Mamba2Block(4, heads=2, state=3, mode="loop"),
        nn.SSMBlock(nn.LRU(4, 6, 4), 4),
        nn.SSMBlock(nn.MambaBlock(4, 1, state=2), 4, None, norm="rms"),
    ],
    ids=lambda layer: type(layer).__name__ if isinstance(layer, nn.Module) else str(layer),
)
def test_they_keep_every_promise(layer: nn.StateLayer, compiled: bool) -> None:
    nn.assert_sequence_layer(layer, numbers(3, 6, 4, dtype=np.float32), compiled=compiled)


@pytest.mark.parametrize("layer", [nn.CausalDepthwiseConv(4, 3), nn.MambaBlock(4), nn.Mamba2Block(4, 2, 3)])
def test_padding_between_tokens_is_no_neighbour(layer: nn.StateLayer) -> None:
    x, real = numbers(2, 9, 4, dtype=np.float32), RNG.random((2, 9)) > 0.4
    found = np.asarray(layer(wl.where(real[..., None], x, np.nan), token_mask=real))
    for i in range(2):
        np.testing.assert_allclose(found[i][real[i]], layer(x[i][np.flatnonzero(real[i])]), atol=1e-5)


# --- Mamba-2


@pytest.mark.parametrize("chunk", [1, 3, 5, 16])
def test_chunks_are_the_recurrence(chunk: int) -> None:
    b, t, h, p, g, n = 2, 11, 4, 3, 2, 5
    x, delta, A = numbers(b, t, h, p), wl.softplus(numbers(b, t, h)), -wl.exp(numbers(h))
    B, C, D, start = numbers(b, t, g, n), numbers(b, t, g, n), numbers(h), numbers(b, h, p, n)
    y, last = nn.ssd(x, delta, A, B, C, D, start, chunk=chunk)
    s = np.asarray(start)
    for i in range(t):
        into, out = (np.repeat(np.asarray(part)[:, i], h // g, axis=1) for part in (B, C))
        s = np.exp(np.asarray(delta)[:, i] * np.asarray(A))[..., None, None] * s
        s = s + np.einsum("bh,bhp,bhn->bhpn", np.asarray(delta)[:, i], np.asarray(x)[:, i], into)
        wanted = np.einsum("bhpn,bhn->bhp", s, out) + np.asarray(D)[:, None] * np.asarray(x)[:, i]
        np.testing.assert_allclose(y[:, i], wanted, atol=1e-12)
    np.testing.assert_allclose(last, s, atol=1e-12)
    for one, other in zip(nn.ssd(x, delta, A, B, C, D, start, mode="loop"), (y, last), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    if chunk == 3:
        for mode in ("chunked", "loop"):
            run = lambda *args, mode=mode: nn.ssd(*args, chunk=2, mode=mode)
            wl.check_grads(run, (x[:, :5], delta[:, :5], A, B[:, :5], C[:, :5], D, start))
        with pytest.raises(ShapeError, match="g that divides h"):
            nn.ssd(x, delta, A, numbers(b, t, 3, n), numbers(b, t, 3, n))
        with pytest.raises(InputError, match="mode='fast'"):
            nn.ssd(x, delta, A, B, C, mode="fast")


def test_strong_decays_neither_overflow_nor_spoil_gradients() -> None:
    x, delta = numbers(1, 40, 2, 3, dtype=np.float32), wl.full((1, 40, 2), 30.0)
    B, C = numbers(1, 40, 1, 4, dtype=np.float32), numbers(1, 40, 1, 4, dtype=np.float32)
    loss = lambda delta, mode: wl.sum(nn.ssd(x, delta, -wl.ones(2) * 20, B, C, mode=mode)[0] ** 2)
    for mode in ("chunked", "loop"):
        assert np.isfinite(np.asarray(wl.grad(loss)(delta, mode))).all()


def test_the_block_of_mamba_2() -> None:
    e, h, n, g, k = 4, 4, 3, 2, 4
    block, d = nn.Mamba2Block(e, h, n, groups=g, conv=k), 8
    mixed = d + 2 * g * n
    assert block.num_parameters() == e * (d + mixed + h) + (k + 1) * mixed + 3 * h + d + d * e
    one, other = block.copy(), block.copy()
    one.mode, other.chunk = "loop", 4
    x = numbers(2, 10, e, dtype=np.float32)
    np.testing.assert_allclose(one(x), other(x), atol=1e-6)
    # the norm of groups: each by itself
    norm = nn.GatedRMSNorm(4, groups=2, eps=0.0)
    y = np.asarray(norm(wl.tensor([3.0, 4.0, 30.0, 40.0]), wl.ones(4)))
    np.testing.assert_allclose(y[:2], y[2:], rtol=1e-6)
    np.testing.assert_allclose(np.mean(y**2), 1, rtol=1e-6)
    with pytest.raises(InputError, match="5 features in 2 groups"):
        nn.GatedRMSNorm(5, 2)
