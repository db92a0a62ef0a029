"""Linear attention: the definition, three forms that agree, its memory, its cost, and the layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.nn.test_attention import peak
from wonderland import nn
from wonderland.errors import InputError, ShapeError
from wonderland.ir.cost import multiply_adds
from wonderland.transforms.jit.jit import make_graph

F = nn.functional
MODES = ["auto", "whole", "chunked", "recurrent"]
MAPS: dict[str, Callable[[], Any]] = {
    "elu": lambda: nn.EluPlusOne(),
    "quadratic": lambda: nn.PolynomialMap(4, 2),
    "fourier": lambda: nn.RandomFourierMap(4, 9, dtype=wl.float64, key=wl.random.key(5)),
}


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float64) -> wl.Tensor:
    return wl.tensor(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def qkv(*lead: int, n: int = 11, c: int = 4, v: int = 3, dtype: Any = np.float64) -> tuple[wl.Tensor, ...]:
    return tuple(numbers(*lead, n, size, seed=i, dtype=dtype) for i, size in enumerate((c, c, v)))


def by_hand(q: Any, k: Any, v: Any, phi: Callable[..., Any], causal: bool, normalize: bool = True) -> np.ndarray:
    """Sums over pairs, in Python."""
    a, b, values = np.asarray(phi(q)), np.asarray(phi(k)), np.asarray(v)
    out = np.zeros((len(a), values.shape[1]))
    for i in range(len(a)):
        seen = range(i + 1) if causal else range(len(b))
        weights = {j: a[i] @ b[j] for j in seen}
        out[i] = sum((w * values[j] for j, w in weights.items()), np.zeros(values.shape[1]))
        if normalize:
            out[i] /= sum(weights.values())
    return out


# --- the definition


@pytest.mark.book("13.02", name="wl.nn.functional.kernel_attention")
@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_any_alpha(causal: bool) -> None:
    q, k, v = qkv(2)
    softmax = F.kernel_attention(q, k, v, lambda x, y: wl.exp((x * y).sum(-1) / 2), causal)
    np.testing.assert_allclose(softmax, F.scaled_dot_product_attention(q, k, v, is_causal=causal), rtol=1e-12)
    found = np.asarray(F.kernel_attention(q, k, v, lambda x, y: 1 / (1 + ((x - y) ** 2).sum(-1)), causal))
    a, b, values = np.asarray(q), np.asarray(k), np.asarray(v)
    weights = 1 / (1 + ((a[:, :, None] - b[:, None]) ** 2).sum(-1))
    weights = np.tril(weights) if causal else weights
    np.testing.assert_allclose(found, weights @ values / weights.sum(-1, keepdims=True), rtol=1e-12)


@pytest.mark.book("13.04", name="wl.nn.functional.linear_attention")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", MAPS)
def test_linear_attention_is_that_of_its_kernel(name: str, causal: bool) -> None:
    phi, (q, k, v) = MAPS[name](), qkv()
    v = v if name != "fourier" else v + 5
    exact = F.kernel_attention(q, k, v, phi.kernel, causal)
    found = F.linear_attention(q, k, v, phi, causal)
    assert found.shape == (11, 3)
    scale = np.abs(np.asarray(exact)).max()
    np.testing.assert_allclose(found, exact, atol=1e-12 * scale, rtol=1e-10)
    if name != "fourier":  # whose sums may be negative
        np.testing.assert_allclose(exact, by_hand(q, k, v, phi, causal), rtol=1e-10)


@pytest.mark.book("13.04", name="wl.nn.functional.linear_attention")
def test_no_matrix_of_pairs_is_formed() -> None:
    """Not causal: what is in use grows by the length, and 4,096 x 4,096 numbers would be 67 MB."""
    q, k, v = qkv(n=4096, c=8, v=8, dtype=np.float32)
    assert peak(lambda: F.linear_attention(q, k, v)) < 30 * 4096 * 8 * 4
    assert peak(lambda: wl.grad(lambda *a: F.linear_attention(*a).sum(), (0, 1, 2))(q, k, v)) < 80 * 4096 * 8 * 4


# --- the forms


@pytest.mark.book("13.10", "13.11", "13.12", name="wl.nn.functional.linear_attention")
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [1, 2, 11, 40])
def test_causal_forms_agree(n: int, mode: str, normalize: bool) -> None:
    q, k, v = qkv(2, 3, n=n)
    found = np.asarray(F.linear_attention(q, k, v, causal=True, normalize=normalize, mode=mode, chunk=8))
    for i in np.ndindex(2, 3):
        wanted = by_hand(q[i], k[i], v[i], F.elu_plus_one, True, normalize)
        np.testing.assert_allclose(found[i], wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_all_forms(mode: str) -> None:
    q, k, v = qkv(n=7)
    for causal in (False, True):
        f = lambda q, k, v: F.linear_attention(q, k, v, causal=causal, mode=mode, chunk=3)  # noqa: B023
        wl.check_grads(f, (q, k, v))
        loss = lambda *a: (f(*a) ** 2).sum()  # noqa: B023
        eager, compiled = wl.grad(loss, (0, 1, 2))(q, k, v), wl.jit(wl.grad(loss, (0, 1, 2)))(q, k, v)
        for one, other in zip(eager, compiled, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.book("13.10", name="wl.nn.LinearAttention")
@pytest.mark.parametrize("mode", MODES)
def test_what_comes_later_has_no_gradient(mode: str) -> None:
    q, k, v = qkv(n=9)
    f = lambda k, v: F.linear_attention(q, k, v, causal=True, mode=mode, chunk=4)
    for jacobian in wl.jacobian(f, (0, 1))(k, v):  # (9, 3, 9, .)
        sizes = np.abs(np.asarray(jacobian)).sum(axis=(1, 3))
        assert (sizes[np.triu_indices(9, 1)] == 0).all()
        assert (sizes[np.tril_indices(9, -1)] > 0).all()


@pytest.mark.book("13.11", name="wl.nn.LinearAttention.step")
def test_the_recurrence_by_hand() -> None:
    """S and z from zero, read after they were changed; the same as masked attention to 1e-15."""
    q, k, v = qkv(n=30)
    a, b, values = np.asarray(F.elu_plus_one(q)), np.asarray(F.elu_plus_one(k)), np.asarray(v)
    s, z, out = np.zeros((4, 3)), np.zeros(4), []
    for i in range(30):
        s, z = s + np.outer(b[i], values[i]), z + b[i]
        out.append(a[i] @ s / (a[i] @ z))
    masked = F.linear_attention(q, k, v, causal=True, mode="whole")
    np.testing.assert_allclose(np.stack(out), masked, atol=1e-14)
    np.testing.assert_allclose(F.linear_attention(q, k, v, causal=True, mode="recurrent"), masked, atol=1e-14)
    layer = nn.LinearAttention(6, 2, key_size=5, value_size=4, dtype=wl.float64, key=wl.random.key(0))
    x = numbers(2, 30, 6)
    cache, sizes = layer.new_cache(2), []
    for i in range(30):
        y, cache = layer.step(x[:, i], cache)
        sizes.append(cache.nbytes)
        np.testing.assert_allclose(y, layer(x[:, : i + 1])[:, -1], atol=1e-13)
    assert set(sizes) == {2 * 2 * (5 * 4 + 5) * 8}  # (e, v) and (e) for each head, whatever was read
    heads = lambda layer: np.asarray(layer(x)).reshape(2, 30, 2, -1).swapaxes(1, 2)
    keys = np.asarray(F.elu_plus_one(wl.tensor(heads(layer.key))))
    np.testing.assert_allclose(cache.state["memory"], keys.swapaxes(-1, -2) @ heads(layer.value), rtol=1e-12)
    np.testing.assert_allclose(cache.state["total"], keys.sum(axis=-2), rtol=1e-12)


def naive(q: wl.Tensor, k: wl.Tensor, v: wl.Tensor) -> wl.Tensor:
    """All the sums, for all tokens: (n, e, v) numbers."""
    a, b = F.elu_plus_one(q), F.elu_plus_one(k)
    sums = wl.cumulative_sum(b[..., :, None] * v[..., None, :], axis=-3)
    return (a[..., None, :] @ sums)[..., 0, :] / (a * wl.cumulative_sum(b, axis=-2)).sum(-1, keepdims=True)


@pytest.mark.book("13.13", name="wl.nn.functional.linear_attention")
def test_memory_of_chunks() -> None:
    """A sum kept for each token takes n e v numbers; chunks of C take about n C + n e v / C."""
    n, c = 1024, 32
    q, k, v = qkv(n=n, c=c, v=c, dtype=np.float32)
    blow_up = n * c * c * 4
    loss = lambda f: lambda *a: (f(*a) ** 2).sum()
    causal = lambda q, k, v: F.linear_attention(q, k, v, causal=True)
    np.testing.assert_allclose(causal(q, k, v), naive(q, k, v), rtol=1e-4, atol=1e-5)
    for make in (lambda f: f, lambda f: wl.grad(loss(f), (0, 1, 2))):
        direct, chunked = (peak(lambda: make(f)(q, k, v)) for f in (naive, causal))  # noqa: B023
        assert direct > blow_up
        assert chunked < 0.6 * blow_up
        assert chunked < direct / 4
        # compiled, as the graph says
        direct, chunked = (wl.count(make(f), q, k, v).peak_bytes for f in (naive, causal))
        assert direct > blow_up
        assert chunked < blow_up / 2
    twice = qkv(n=2 * n, c=c, v=c, dtype=np.float32)
    grads = wl.grad(loss(causal), (0, 1, 2))
    assert peak(lambda: grads(*twice)) < 2.3 * peak(lambda: grads(q, k, v))


# --- cost


def attention_cost(n: int, c: int) -> int:
    return 2 * n * n * c


def linear_cost(n: int, e: int, c: int) -> int:
    return 2 * n * e * (c + 1)


def products(f: Callable[..., Any], *args: Any) -> int:
    """The multiply-adds of products of matrices; `wl.count` adds what is done element by element."""
    return sum(multiply_adds(e) for e in make_graph(f)(*args).equations if e.primitive.name == "matmul")


@pytest.mark.book("13.05", name="wl.count")
def test_what_it_costs_and_when_it_pays() -> None:
    """It pays when n is large, n > e; the printed rule, n < e^2, is the wrong way round."""
    c = 16
    shapes = lambda n: [wl.ShapeDtype((n, c), wl.float32)] * 3
    quadratic = nn.PolynomialMap(c, 2)
    for n in (8, 64, 256, 1024):
        assert products(F.linear_attention, *shapes(n)) == linear_cost(n, c, c)
        squares = lambda q, k, v: F.linear_attention(q, k, v, quadratic)
        assert products(squares, *shapes(n)) == linear_cost(n, quadratic.size, c)
        assert wl.count(F.scaled_dot_product_attention, *shapes(n)).multiply_adds == attention_cost(n, c)
    counts = [wl.count(F.linear_attention, *shapes(n)).multiply_adds for n in (64, 128, 256)]
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])  # linear in n, all included
    crossover = lambda cost: next(n for n in range(1, 1000) if cost(n) < attention_cost(n, c))
    assert crossover(lambda n: linear_cost(n, c, c)) == c + 2  # n > e (c + 1) / c
    assert c < crossover(lambda n: wl.count(F.linear_attention, *shapes(n)).multiply_adds) < 2 * c
    size = quadratic.size
    assert size < crossover(lambda n: linear_cost(n, size, c)) < 1.1 * size
    # the literal rule fails on both sides: below e it costs more, beyond e^2 it costs far less
    assert linear_cost(c // 2, c, c) > attention_cost(c // 2, c)
    assert linear_cost(4 * c * c, c, c) < attention_cost(4 * c * c, c) / 50


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("n", [1, 10, 70])
def test_the_layer_knows_its_cost(n: int, normalize: bool, causal: bool) -> None:
    layer = nn.LinearAttention(12, 3, 4, 5, 7, causal=causal, normalize=normalize)
    x = wl.ones((2, n, 12))
    assert layer.multiply_adds((x,), layer(x)) == products(layer, x)


# --- the layer

LAYERS: dict[str, Callable[[], nn.LinearAttention]] = {
    "elu": lambda: nn.LinearAttention(8, 2),
    "chunks": lambda: nn.LinearAttention(8, 2, chunk=2, key_size=3, value_size=5, out_features=6, bias=False),
    "quadratic": lambda: nn.LinearAttention(8, 2, feature_map=nn.PolynomialMap(4)),
    "fourier": lambda: nn.LinearAttention(8, 2, feature_map=nn.RandomFourierMap(4, 16), normalize=False, chunk=3),
}


@pytest.mark.book("13.10", "13.11", "13.12", name="wl.nn.LinearAttention")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_the_layer_reads_on(name: str, compiled: bool) -> None:
    nn.assert_sequence_layer(LAYERS[name](), numbers(3, 7, 8, dtype=np.float32), compiled=compiled)


@pytest.mark.book("13.04", name="wl.nn.LinearAttention")
@pytest.mark.parametrize("compiled", [False, True])
def test_the_layer_that_sees_all(compiled: bool) -> None:
    layer, x = nn.LinearAttention(8, 2, causal=False), numbers(3, 7, 8, dtype=np.float32)
    nn.assert_padding_ignored(layer, x, compiled=compiled)
    nn.assert_rows_alone(layer, x, compiled=compiled)
    nn.assert_order_free(layer, x, compiled=compiled)
    nn.assert_threads_agree(layer, x)
    for call in (lambda: layer.new_cache(2), lambda: layer.extend(x), lambda: layer.step(x[:, 0])):
        with pytest.raises(InputError, match=r"reads on, but its tokens see what comes later(.|\n)*causal=True"):
            call()


def test_the_layer_is_its_heads() -> None:
    layer = nn.LinearAttention(6, 3, dtype=wl.float64)
    x = numbers(5, 6)
    q, k, v = (part(x).reshape(5, 3, 2) for part in (layer.query, layer.key, layer.value))
    heads = [by_hand(q[:, h], k[:, h], v[:, h], F.elu_plus_one, True) for h in range(3)]
    np.testing.assert_allclose(layer(x), layer.output(wl.tensor(np.concatenate(heads, axis=1))), rtol=1e-10)
    assert layer.num_parameters() == 4 * 36 + 4 * 6 == nn.MultiHeadAttention(6, 3).num_parameters()
    other = nn.MultiHeadAttention(6, 3, dtype=wl.float64)
    other.load_state_dict(layer.state_dict())  # the same names and shapes


def test_half_precision_keeps_sums_in_float32() -> None:
    layer = nn.LinearAttention(8, 2, dtype=wl.bfloat16, key=wl.random.key(0))
    wide = nn.LinearAttention(8, 2, key=wl.random.key(0))
    wide.load_state_dict({name: value.astype(wl.float32) for name, value in layer.state_dict().items()})
    x = numbers(2, 500, 8, dtype=np.float32)
    y, cache = layer.extend(x.astype(wl.bfloat16))
    assert (y.dtype, cache.state["memory"].dtype) == (wl.bfloat16, wl.float32)
    assert np.abs(np.asarray(y, np.float32) - np.asarray(wide(x))).max() < 0.03


def test_nothing_and_masks() -> None:
    layer = nn.LinearAttention(8, 2)
    assert layer(wl.zeros((2, 0, 8))).shape == (2, 0, 8)
    assert layer(wl.zeros((0, 3, 8))).shape == (0, 3, 8)
    q, k, v = qkv(2)
    mask = np.random.default_rng(0).random((2, 11)) > 0.4
    k, v = (wl.where(mask[..., None], x, np.nan) for x in (k, v))
    for mode in MODES:
        for causal in (False, True):
            found = np.asarray(F.linear_attention(q, k, v, causal=causal, mode=mode, token_mask=mask, chunk=4))
            wanted = F.kernel_attention(q, k, v, nn.EluPlusOne().kernel, causal, token_mask=mask)
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-13)
    nobody = F.linear_attention(q, k, v, token_mask=np.zeros((2, 11), bool))
    assert (np.asarray(nobody) == 0).all()


def test_bad_input() -> None:
    q, k, v = qkv()
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: F.linear_attention(q, k[:5], v), r"queries \(11, 4\), keys \(5, 4\) and values \(11, 3\)"),
        (lambda: F.linear_attention(q[:5], k, v, causal=True), r"causal, with queries \(5, 4\)"),
        (lambda: F.linear_attention(q, k, v, token_mask=np.ones(11)), r"token_mask float64\[11\]"),
        (lambda: F.linear_attention(q, k, v, token_mask=np.ones(5, bool)), r"token_mask bool\[5\]"),
        (lambda: F.kernel_attention(q, k, v, lambda x, y: x * y), r"alpha gives \(11, 11, 4\)"),
        (lambda: nn.LinearAttention(8, 2)(wl.ones((3, 7))), r"LinearAttention\(8, 2\): an input of shape \(3, 7\)"),
    ]
    for call, message in wrong:
        with pytest.raises(ShapeError, match=message):
            call()
    wrong = [
        (lambda: F.linear_attention(q, k, v, mode="parallel"), "mode='parallel'"),
        (lambda: F.linear_attention(q, k, v, causal=True, chunk=0), "chunk=0"),
        (lambda: nn.LinearAttention(8, 3), "8 features cannot be cut into 3 heads"),
        (lambda: nn.LinearAttention(8, 2, guard="no"), "guard='no'"),
        (lambda: nn.LinearAttention(8, 2, chunk=0), "chunk=0"),
    ]
    for call, message in wrong:
        with pytest.raises(InputError, match=message):
            call()


# --- as a state-space model


@pytest.mark.book("13.64", name="wl.nn.functional.linear_recurrence")
@pytest.mark.parametrize("method", ["sequential", "associative"])
def test_without_a_denominator_it_is_a_state_space_model(method: str) -> None:
    """s_i = A s_{i-1} + B_i x_i, h_i = C_i s_i with A = I, inputs phi(k_i) v_i^T and C_i = phi(q_i)^T."""
    q, k, v = qkv(2, n=13)
    a, b = F.elu_plus_one(q), F.elu_plus_one(k)
    inputs = b[..., :, None] * v[..., None, :]  # (2, n, e, v)
    states = F.linear_recurrence(1.0, inputs, axis=1, method=method)
    found = (a[..., None, :] @ states)[..., 0, :]
    for mode in MODES:
        unnormalized = F.linear_attention(q, k, v, causal=True, normalize=False, mode=mode, chunk=4)
        np.testing.assert_allclose(unnormalized, found, rtol=1e-12, atol=1e-13)
    # the matrix A = I acts as such: one that forgets gives something else
    other = (a[..., None, :] @ F.linear_recurrence(0.9, inputs, axis=1, method=method))[..., 0, :]
    assert np.abs(np.asarray(other - found)).max() > 0.1
    layer = nn.LinearAttention(4, 1, normalize=False, dtype=wl.float64)
    x = numbers(2, 9, 4)
    q, k, v = layer.query(x), layer.key(x), layer.value(x)
    states = F.linear_recurrence(1.0, F.elu_plus_one(k)[..., None] * v[..., None, :], axis=1, method=method)
    np.testing.assert_allclose(
        layer(x), layer.output((F.elu_plus_one(q)[..., None, :] @ states)[..., 0, :]), rtol=1e-10
    )
    _, cache = layer.extend(x)
    np.testing.assert_allclose(cache.state["memory"][:, 0], states[:, -1], rtol=1e-10)
