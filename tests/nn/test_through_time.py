"""Gradients through time: terms of the sum, their order, how far back they reach, and what it costs to keep them."""

from __future__ import annotations

import functools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.nn.test_state_layer import Leaky
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError

RNG = np.random.default_rng(5)
N, H, C = 7, 3, 2
A, B = (wl.tensor(RNG.normal(size=shape)) for shape in ((H, H), (C, H)))
XS = wl.tensor(RNG.normal(size=(N, C)))


class Cell(nn.Module):
    """tanh(s A + x B), one step."""

    def __init__(self, scale: float = 1.0) -> None:
        self.A = nn.Parameter(scale * A)
        self.B = nn.Parameter(B + 0)

    def forward(self, x: Any, s: Any = None) -> Any:
        u = x @ self.B
        return wl.tanh(u if s is None else s @ self.A + u)


def last_state(A: Any, xs: Any = XS) -> Any:
    s = wl.zeros(H, dtype=wl.float64)
    for x in xs:
        s = wl.tanh(s @ A + x @ B)
    return s


def tied_depth(weights: list[Any]) -> Any:
    """A network of as many layers as there are steps, each with weights of its own."""
    s = wl.zeros(H, dtype=wl.float64)
    for x, W in zip(XS, weights, strict=True):
        s = wl.tanh(s @ W + x @ B)
    return s


# --- one parameter, many steps


@pytest.mark.book("13.24", "A5-04", name=["wl.scan", "wl.grad"])
def test_an_unrolled_recurrence_is_a_deep_network_with_tied_weights() -> None:
    def scanned(A: Any) -> Any:
        def step(s: Any, x: Any) -> tuple[Any, None]:
            return wl.tanh(s @ A + x @ B), None

        return wl.scan(step, wl.zeros(H, dtype=wl.float64), XS)[0]

    np.testing.assert_allclose(scanned(A), tied_depth([A] * N), rtol=1e-12)
    weigh = wl.tensor([1.0, -2.0, 0.5], dtype=wl.float64)
    layers = wl.grad(lambda weights: wl.sum(weigh * tied_depth(weights)))([A] * N)  # a gradient for each layer
    for f in (scanned, wl.jit(scanned), last_state):
        shared = wl.grad(lambda A, f=f: wl.sum(weigh * f(A)))(A)
        np.testing.assert_allclose(shared, sum(layers), rtol=1e-10)  # they are added up
        assert np.abs(np.asarray(shared) - np.asarray(layers[-1])).max() > 0.01  # not overwritten by the last
        assert np.abs(np.asarray(shared) - np.asarray(layers[0])).max() > 0.01
    a = (A + 0).requires_grad_()
    wl.sum(weigh * last_state(a)).backward()
    assert a.grad is not None
    np.testing.assert_allclose(a.grad, sum(layers), rtol=1e-10)
    wl.check_grads(lambda A: scanned(A), (A,))


@pytest.mark.book("13.25", name="wl.nn.bptt_terms")
def test_the_terms_of_bptt_add_up_in_one_order_only() -> None:
    cell = Cell()
    found = nn.bptt_terms(cell, XS)
    derivative = np.asarray(wl.jacobian(last_state)(A))  # (h, h, h)
    np.testing.assert_allclose(found.total()["A"], derivative, rtol=1e-10)
    columns = [wl.numerical_jvp(last_state, (A,), (wl.tensor(e.reshape(H, H)),)) for e in np.eye(H * H)]
    differences = np.stack([np.asarray(c) for c in columns], axis=-1).reshape(H, H, H)
    np.testing.assert_allclose(found.total()["A"], differences, atol=1e-8)
    # by hand: J_n ... J_{i+1}, times the direct derivative of step i
    forwards = backwards = np.zeros((H, H, H))
    for i in range(N):
        right, wrong = np.eye(H), np.eye(H)
        for j in range(i + 1, N):
            right, wrong = found.jacobians[j] @ right, wrong @ found.jacobians[j]
        term = np.tensordot(right, found.direct["A"][i], axes=1)
        np.testing.assert_allclose(found.terms["A"][i], term, atol=1e-14)
        forwards, backwards = forwards + term, backwards + np.tensordot(wrong, found.direct["A"][i], axes=1)
    np.testing.assert_allclose(forwards, derivative, atol=1e-12)
    assert np.abs(backwards - derivative).max() > 0.05  # the product turned round is another number
    # the norms are those of all parameters, step by step
    sizes = [math.hypot(*(np.linalg.norm(found.terms[p][i]) for p in ("A", "B"))) for i in range(N)]
    np.testing.assert_allclose(found.norms, sizes)
    np.testing.assert_array_equal(found.terms["A"][0], 0)  # the first state is 0, so A does nothing in the first step
    np.testing.assert_allclose(found.states[-1], last_state(A), rtol=1e-12)


def test_terms_of_functions_and_of_states_with_parts() -> None:
    """A cell with two states, as an LSTM has them, by a function of its parameters."""

    def f(p: Any, x: Any, s: Any) -> Any:
        h, c = s
        c = wl.sigmoid(p["f"]) * c + wl.tanh(h @ p["A"] + x @ B)
        return wl.tanh(c), c

    p = {"A": A, "f": wl.tensor([0.5, -0.5, 1.0], dtype=wl.float64)}
    zero = (wl.zeros(H, dtype=wl.float64), wl.zeros(H, dtype=wl.float64))
    found = nn.bptt_terms(f, XS, zero, p)

    def last(p: Any) -> Any:
        s = zero
        for x in XS:
            s = f(p, x, s)
        return wl.concat(s)

    wanted = wl.jacobian(last)(p)
    for name in p:
        np.testing.assert_allclose(found.total()[name], wanted[name], atol=1e-12)
    assert found.jacobians.shape == (N, 2 * H, 2 * H)
    assert nn.bptt_terms(f, XS[:0], zero, p).total()["A"].shape == (2 * H, H, H)


def test_errors_of_terms() -> None:
    with pytest.raises(InputError, match="without a state"):
        nn.bptt_terms(lambda p, x, s: s, XS)
    with pytest.raises(InputError, match="parameters of its own"):
        nn.bptt_terms(Cell(), XS, wl.zeros(H), {"A": A})
    with pytest.raises(ShapeError, match="a state of 3 numbers became one of 2"):
        nn.bptt_terms(lambda p, x, s: s[:2] * p, XS, wl.zeros(3), wl.tensor(1.0))
    with pytest.raises(ShapeError, match=r"shape \(\)"):
        nn.bptt_terms(Cell(), 1.0)


# --- how far back


class Linear(nn.StateLayer):
    """s_i = s_{i-1} A + x_i, without a nonlinearity."""

    def __init__(self, matrix: Any) -> None:
        self.weight_hh = nn.Parameter(matrix)

    def features(self) -> int:
        return self.weight_hh.shape[0]

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"s": (self.weight_hh.shape[0],)}

    def run(self, x: Any, state: Any, real: Any) -> Any:
        def step(s: Any, u: Any) -> Any:
            s = s @ self.weight_hh + u
            return s, s

        s, y = wl.scan(step, state["s"], wl.swapaxes(x, 0, 1))
        return wl.swapaxes(y, 0, 1), {"s": s}


@pytest.mark.book("13.26", "A5-09", name=["wl.nn.sensitivity", "wl.nn.sensitivity_by_lag"])
@pytest.mark.parametrize("rho", [0.9, 1.0, 1.1])
def test_gradients_of_a_linear_recurrence_go_with_powers_of_the_spectral_radius(rho: float) -> None:
    q = wl.random.orthogonal((4, 4), key=wl.random.key(0), dtype=wl.float64)  # all its eigenvalues have size 1
    layer = Linear(rho * q)
    found = nn.sensitivity(layer, wl.tensor(RNG.normal(size=(2, 12, 4))))
    t, s = np.indices((12, 12))
    wanted = np.where(t >= s, 2.0 * rho ** np.abs(t - s), 0.0)  # the norm of an orthogonal matrix of size 4 is 2
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(found[t < s], 0)
    np.testing.assert_allclose(nn.sensitivity_by_lag(found), 2.0 * rho ** np.arange(12), rtol=1e-10)
    # any matrix decays with its largest eigenvalue in the end
    matrix = wl.tensor([[rho, 5.0], [0.0, 0.3]], dtype=wl.float64)
    by_lag = nn.sensitivity_by_lag(nn.sensitivity(Linear(matrix), wl.zeros((20, 2), dtype=wl.float64)))
    np.testing.assert_allclose(by_lag[15:] / by_lag[14:-1], rho, rtol=1e-3)


@pytest.mark.book("13.26", name=["wl.grad", "wl.nn.init.orthogonal"])
def test_a_hundred_steps() -> None:
    def after(a: float) -> float:
        layer = Linear(wl.tensor([[a]], dtype=wl.float64))
        x = wl.zeros((1, 101, 1), dtype=wl.float64)
        return wl.grad(lambda x: layer(x)[0, -1, 0])(x)[0, 0, 0].item()

    assert after(0.9) == pytest.approx(2.656e-5, rel=1e-3)
    assert after(1.1) == pytest.approx(13780.6, rel=1e-5)
    # a nonlinearity has a factor below 1 in every step; an orthogonal start keeps the rest at 1
    start = nn.init.orthogonal()((8, 8), wl.random.key(1))
    assert float(wl.linalg.spectral_radius(start)) == pytest.approx(1.0, abs=1e-5)
    f = lambda A, x, s: wl.tanh(s @ A + x)
    norms = nn.bptt_terms(f, wl.tensor(0.5 * RNG.normal(size=(30, 8)).astype(np.float32)), wl.zeros(8), start).norms
    assert norms[1] < 0.01 * norms[-1]
    linear = nn.bptt_terms(lambda A, x, s: s @ A + x, wl.ones((30, 8)), wl.zeros(8), start)
    sizes = [np.linalg.norm(j, 2) for j in linear.jacobians]
    np.testing.assert_allclose(sizes, 1.0, rtol=1e-5)


@pytest.mark.book("13.26", "A5-09", name=["wl.nn.sensitivity_picture", "wl.nn.lag_picture"])
def test_pictures_of_forgetting() -> None:
    x = wl.tensor(RNG.normal(size=(40, 4)).astype(np.float32))
    table = nn.sensitivity(Leaky(4, 3), x)
    svg = nn.sensitivity_picture(table)
    assert svg.startswith("<svg")
    assert svg.count('class="cell"') == 20 * 20  # blocks of two steps
    assert 'fill-opacity="1"' in svg
    assert 'fill-opacity="0"' in svg
    assert nn.sensitivity_picture(table[:10, :10]).count('class="cell"') == 100
    curves = {"leaky": nn.sensitivity_by_lag(table), "none": np.r_[1.0, np.zeros(39)]}
    assert nn.lag_picture(curves).count("<polyline") >= 1
    with pytest.raises(DTypeError, match="int64 have no derivative"):
        nn.sensitivity(Leaky(), wl.zeros((3, 4), dtype=wl.int64))
    with pytest.raises(ShapeError, match="the layer gave"):
        nn.sensitivity(lambda x: x[:, :1], wl.ones((3, 4)))
    with pytest.raises(ShapeError, match=r"values of shape \(2, 3\)"):
        nn.sensitivity_picture(np.ones((2, 3)))


@pytest.mark.book("13.26", name=["wl.nn.spectral_radii", "wl.linalg.spectral_radius"])
def test_the_spectral_radius_by_eigenvalues_by_powers_and_while_training() -> None:
    for matrix in (RNG.normal(size=(6, 6)), np.array([[0.0, 2.0], [-0.5, 0.0]]), np.diag([0.5, -0.9])):
        wanted = np.abs(np.linalg.eigvals(matrix)).max()
        m = wl.tensor(matrix)
        assert float(wl.linalg.spectral_radius(m)) == pytest.approx(wanted)
        found = wl.linalg.estimate_spectral_radius(functools.partial(wl.matmul, m), wl.zeros(len(matrix)), 400)
        assert found == pytest.approx(wanted, rel=0.02)
    assert wl.linalg.estimate_spectral_radius(lambda v: 0.0 * v, wl.zeros(2)) == 0.0
    assert wl.linalg.spectral_radius(wl.zeros((3, 0, 0))).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        wl.linalg.spectral_radius(wl.ones((2, 3)))
    lstm: Any = nn.LSTM(2, 3)
    radii = nn.spectral_radii(lstm)
    assert list(radii) == [f"weight_hh_l0[{i}]" for i in range(4)]
    forget = np.asarray(lstm.weight_hh_l0)[:, 3:6]
    assert radii["weight_hh_l0[1]"] == pytest.approx(np.abs(np.linalg.eigvals(forget)).max(), rel=1e-5)
    with pytest.raises(InputError, match="no parameter has 'nothing'"):
        nn.spectral_radii(lstm, "nothing")
    model = Linear(0.5 * wl.eye(2))
    monitor = wl.train.LambdaCallback(on_epoch_end=lambda trainer, record: record.update(nn.spectral_radii(model)))
    x = wl.tensor(RNG.normal(size=(4, 5, 2)).astype(np.float32))
    history = wl.train.fit(model, "mse_loss", (x, x), epochs=3, lr=0.1, callbacks=[monitor], progress=False)
    assert len(history["weight_hh"]) == 3
    assert history["weight_hh"][-1] == pytest.approx(nn.spectral_radii(model)["weight_hh"])
    assert history["weight_hh"][-1] < 0.5


# --- cut and computed again


@pytest.mark.book("13.28", name=["wl.nn.read_in_pieces", "wl.nn.bptt_terms"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_cut_gradient_has_no_lag_beyond_its_piece(compiled: bool) -> None:
    layer = Linear(wl.tensor(0.8 * np.asarray(A)))
    x, n = wl.tensor(RNG.normal(size=(2, 9, H))), 9
    whole = np.asarray(layer(x))
    full = np.asarray(wl.grad(lambda layer: wl.sum(layer(x) ** 2))(layer)["weight_hh"])
    for steps in (1, 3, 4, n, n + 5):
        pieces = lambda layer, x, steps=steps: nn.read_in_pieces(layer, x, steps, cut=True)
        call: Any = wl.jit(pieces) if compiled else pieces
        np.testing.assert_allclose(call(layer, x), whole, rtol=1e-10)  # the state is carried all the same
        reach = nn.sensitivity(functools.partial(call, layer), x)
        t, s = np.indices((n, n))
        np.testing.assert_array_equal(reach[t // steps != s // steps], 0)  # exactly none; so for every lag above T
        assert (reach[(t // steps == s // steps) & (t >= s)] > 0).all()
        found = wl.grad(lambda layer, call=call: wl.sum(call(layer, x) ** 2))(layer)["weight_hh"]
        if steps >= n:
            np.testing.assert_allclose(found, full, rtol=1e-10)
        else:
            assert np.abs(np.asarray(found) - full).max() > 1e-3
    # the truncated sum of the formula is the gradient of the last piece
    terms = nn.bptt_terms(Cell(), XS)
    cut = wl.jacobian(lambda A: last_state_from(A, terms.states[N - 3], XS[N - 3 :]))(A)
    np.testing.assert_allclose(terms.total(last=3)["A"], cut, atol=1e-12)
    np.testing.assert_array_equal(terms.total(last=N)["A"], terms.total()["A"])
    np.testing.assert_array_equal(terms.total(last=N + 9)["A"], terms.total()["A"])


def last_state_from(A: Any, s: Any, xs: Any) -> Any:
    s = wl.stop_gradient(wl.tensor(s))
    for x in xs:
        s = wl.tanh(s @ A + x @ B)
    return s


@pytest.mark.parametrize("compiled", [False, True])
def test_pieces_of_any_layer_that_reads_on_and_of_their_own_cache(compiled: bool) -> None:
    stack = nn.SequenceStack(
        [nn.MixingBlock(mixer, 4) for mixer in (Leaky(4, 4), nn.MultiHeadAttention(4, 2, causal=True))]
    )
    x = wl.tensor(RNG.normal(size=(2, 8, 4)).astype(np.float32))
    wanted = np.asarray(stack(x))
    gradient = wl.grad(lambda stack: wl.sum(stack(x) ** 2))(stack)
    for settings in ({"checkpoint": True}, {"cut": True}, {}):
        call = lambda stack, x, kw=settings: nn.read_in_pieces(stack, x, 3, **kw)
        run = wl.jit(call) if compiled else call
        np.testing.assert_allclose(run(stack, x), wanted, rtol=1e-4, atol=1e-5)
        found = wl.grad(lambda stack, run=run: wl.sum(run(stack, x) ** 2))(stack)
        same = all(np.allclose(found[k], gradient[k], rtol=1e-3, atol=1e-4) for k in gradient)
        assert same != ("cut" in settings)
    cache = stack.new_cache(2, 8)
    first = nn.read_in_pieces(stack, x[:, :5], 2, cache=cache)
    rest = nn.read_in_pieces(stack, x[:, 5:], cache=cache)
    np.testing.assert_allclose(wl.concat([first, rest], axis=1), wanted, rtol=1e-4, atol=1e-5)
    assert nn.read_in_pieces(Leaky(), wl.zeros((2, 0, 4))).shape == (2, 0, 3)
    with pytest.raises(InputError, match="a Linear does not read on"):
        nn.read_in_pieces(nn.Linear(4, 4), x)
    with pytest.raises(ShapeError, match=r"shape \(3,\)"):
        nn.read_in_pieces(Leaky(), wl.ones(3))


def peak(f: Any, x: Any) -> float:
    """The most memory held at one time while f(x) runs, in units of a state."""
    f(x)
    tracemalloc.start()
    f(x)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found / x.nbytes


def long(s: Any, _: None) -> tuple[Any, None]:
    return wl.sin(s), None


@pytest.mark.parametrize("compiled", [False, True])
@wl.using_backend("numpy")  # native code keeps its values in an arena, see below
def test_memory_is_linear_without_and_a_square_root_with_checkpoints(compiled: bool) -> None:
    s = wl.ones(50_000)
    for n in (16, 64, 144):
        plain: Any = wl.grad(lambda s, n=n: wl.scan(long, s, length=n)[0].sum())
        sparse: Any = wl.grad(lambda s, n=n: wl.checkpoint_scan(long, s, length=n)[0].sum())
        if compiled:
            plain, sparse = wl.jit(plain), wl.jit(sparse)
        assert n <= peak(plain, s) <= n + 8
        assert peak(sparse, s) <= 2 * math.sqrt(n) + 8
    kept = {n: wl.saved(lambda s, n=n: wl.checkpoint_scan(long, s, length=n)[0].sum(), s).bytes for n in (16, 64, 144)}
    assert kept == {n: (math.isqrt(n) - 1) * s.nbytes for n in kept}  # the carries between the parts


def test_so_it_is_in_the_arena_of_native_code() -> None:
    s = wl.ones(10_000)
    room = {}
    for n in (64, 256):
        for name, scan in (("plain", wl.scan), ("sparse", wl.checkpoint_scan)):
            run = wl.jit(wl.grad(lambda s, n=n, scan=scan: scan(long, s, length=n)[0].sum()))
            room[name, n] = wl.explain(run, s).arena_bytes / s.nbytes
    assert room["plain", 256] > 3 * room["plain", 64]
    assert room["sparse", 256] < 2.5 * room["sparse", 64]
    assert room["sparse", 256] < 4 * math.sqrt(256)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 5, 12])
def test_a_scan_with_checkpoints_is_a_scan(n: int, reverse: bool) -> None:
    xs = {"a": wl.tensor(RNG.normal(size=(n, 3))), "b": wl.tensor(RNG.normal(size=(n,)))}
    w, start = wl.tensor(RNG.normal(size=3)), (wl.ones(3, dtype=wl.float64), wl.tensor(0))

    def step(carry: Any, x: Any) -> Any:
        s, k = carry
        s = wl.sin(w * s + x["a"]) * x["b"]
        return (s, k + 1), {"y": s[0], "k": k}

    wanted = wl.scan(step, start, xs, reverse=reverse)
    for every in (None, 1, 4, n + 3):
        for run in (
            wl.checkpoint_scan,
            wl.jit(wl.checkpoint_scan, static_argnums=0, static_argnames=("every", "reverse")),
        ):
            found = run(step, start, xs, every=every, reverse=reverse)
            for a, b in zip(wl.tree.leaves(found), wl.tree.leaves(wanted), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)

    def loss(scan: Any) -> Any:
        def f(w: Any, xs: Any) -> Any:
            def inner(s: Any, x: Any) -> Any:
                s = wl.sin(w * s + x["a"]) * x["b"]
                return s, s

            return wl.sum(scan(inner, start[0], xs, reverse=reverse)[1] ** 2)

        return wl.grad(f, (0, 1))

    for a, b in zip(*(wl.tree.leaves(loss(scan)(w, xs)) for scan in (wl.checkpoint_scan, wl.scan)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)
    with pytest.raises(InputError, match="every=0"):
        wl.checkpoint_scan(step, start, xs, every=0)
