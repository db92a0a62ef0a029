"""What every layer that mixes tokens without softmax attention promises, and what each of them computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError

F = nn.functional
N, E = 5, 4


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


class Attention(nn.Module):
    """The least that a block needs of attention: it is told which tokens are real."""

    def __init__(self, e: int, dtype: Any = None) -> None:
        self.qkv = nn.Linear(e, 3 * e, bias=False, dtype=dtype)

    def forward(self, x: Any, token_mask: Any = None) -> Any:
        q, k, v = wl.split(self.qkv(x), 3, axis=-1)
        seen = None if token_mask is None else wl.expand_dims(token_mask, axis=-2)
        return F.scaled_dot_product_attention(q, k, v, seen)


def bilinear(a: Any, b: Any) -> Any:
    """A matrix for each pair of tokens: their outer product, kept small."""
    return wl.tanh(a)[..., :, None] * wl.cos(b)[..., None, :]


# a layer of each kind, and its number of parameters by closed form; those tied to n tokens are apart
FREE: dict[str, tuple[Any, int]] = {
    "fourier": (lambda dtype: nn.FourierMixer(), 0),
    "fourier of tokens": (lambda dtype: nn.FourierMixer(channels=False), 0),
    "pool": (lambda dtype: nn.PoolMixer(3), 0),
    "mean": (lambda dtype: nn.PoolMixer(None, subtract=False), 0),
    "token shift": (lambda dtype: nn.TokenShift((2, 0, -1)), 0),
    "wrapped shift": (lambda dtype: nn.TokenShift((1, -2), wrap=True), 0),
    "shift mixer": (lambda dtype: nn.ShiftMixer(E, dtype=dtype), 2 * E * E + 2 * E),
    "gated attention": (lambda dtype: nn.GatedAttentionUnit(E, key_size=3, dtype=dtype), 2 * E * 3 + 2 * E * E),
    "wide gated attention": (
        lambda dtype: nn.GatedAttentionUnit(E, 3, hidden=7, activation="silu", dtype=dtype),
        2 * E * 3 + 3 * E * 7,
    ),
    "monet": (lambda dtype: nn.MONetBlock(E, 2, 6, dtype=dtype), 3 * E * 6 + 2 * (E + 6)),
    "odd monet": (lambda dtype: nn.MONetBlock(E, 2, 6, index=1, dtype=dtype), 3 * E * 6 + 2 * (E + 6)),
    "deep sets": (lambda dtype: nn.DeepSets(E, E, dtype=dtype), (2 * E + 1) * E),
    "non-local": (lambda dtype: nn.NonLocal(bilinear), 0),
    "continuous": (lambda dtype: nn.ContinuousConv1d(nn.ImplicitKernel(E, E, 3, dtype=dtype)), 2 * 3 + 3 * E * E),
    "continuous channels": (
        lambda dtype: nn.ContinuousConv1d(nn.ImplicitKernel(E, hidden=3, dtype=dtype), causal=True),
        2 * 3 + 3 * E,
    ),
}
BLOCK = 4 * E + 2 * 4 * E * E + 5 * E  # two normalizations and an MLP
FREE |= {
    f"block of {name}": (lambda dtype, make=make: nn.MixingBlock(make(dtype), E, dtype=dtype), BLOCK + size)
    for name, (make, size) in {
        "attention": (lambda dtype: Attention(E, dtype), 3 * E * E),
        "convolution": (lambda dtype: nn.Conv1d(E, E, 3, padding="same", groups=E, dtype=dtype), 4 * E),
        "fourier": FREE["fourier"],
        "pool": FREE["pool"],
        "shift": FREE["shift mixer"],
        "nothing": (lambda dtype: nn.Identity(), 0),
    }.items()
}
TIED: dict[str, tuple[Any, int]] = {
    "token MLP": (lambda dtype: nn.TokenMLP(N, 3, dtype=dtype), 2 * N * 3 + 3 + N),
    "mixer block": (
        lambda dtype: nn.MixerBlock(N, E, 3, 6, dtype=dtype),
        2 * N * 3 + 3 + N + 2 * E * 6 + 6 + E + 4 * E,
    ),
    "block of token MLP": (
        lambda dtype: nn.MixingBlock(nn.TokenMLP(N, 3, dtype=dtype), E, first="channels", dtype=dtype),
        BLOCK + 2 * N * 3 + 3 + N,
    ),
    "spatial gating": (lambda dtype: nn.SpatialGatingUnit(N, E, dtype=dtype), N * N + N + E),
    "gMLP": (
        lambda dtype: nn.GMLPBlock(N, E, 6, dtype=dtype),
        E * 6 + 6 + 3 * E + E + N * N + N + 6 + 2 * E,
    ),
}
ALL = FREE | TIED
every_mixer = pytest.mark.parametrize("name", ALL)
free_mixers = pytest.mark.parametrize("name", FREE)
MASK = np.array([[True] * 3 + [False] * 2, [True] * 5, [False, True, True, True, True]])


@every_mixer
@pytest.mark.parametrize("dtype", [wl.float32, wl.float64])
@pytest.mark.book("11.60", "11.62", name=("wl.nn.MixingBlock", "wl.nn.FourierMixer", "wl.nn.PoolMixer"))
def test_shapes_types_and_parameters(name, dtype):
    make, parameters = ALL[name]
    layer = make(dtype)
    x = wl.asarray(normal(2, 3, N, E), dtype=dtype)
    y = layer(x)
    assert y.dtype == dtype
    assert layer.num_parameters() == parameters
    assert y.shape == (2, 3, N, E // 2 if name == "spatial gating" else E)
    assert layer.output_shape((2, 3, N, E)) == y.shape
    for i, j in ((0, 0), (1, 2)):  # a sequence alone, and in a batch
        close_array(layer(x[i, j]), y[i, j])
    close_array(wl.jit(lambda m, a: m(a))(layer, x), y)


@every_mixer
@pytest.mark.book("11.60", "11.62", name="wl.nn.MixingBlock")
def test_gradients(name):
    layer = ALL[name][0](wl.float64)
    x = wl.asarray(normal(3, N, E))
    wl.check_grads(lambda m, a: m(a), (layer, x))
    wl.check_grads(lambda m, a: m(a, token_mask=MASK), (layer, x))


@every_mixer
def test_padding_never_reaches_what_is_real(name):
    layer = ALL[name][0](wl.float64)
    x = normal(3, N, E)
    other = np.where(MASK[..., None], x, np.nan)
    f = lambda m, a, mask: (m(a, token_mask=mask) * wl.cos(m(a, token_mask=mask))).sum()
    mask = wl.asarray(MASK)
    for way in (lambda g: g, wl.jit):
        y = np.asarray(way(lambda m, a, s: m(a, token_mask=s))(layer, wl.asarray(other), mask))
        assert (y[~MASK] == 0).all()
        close_array(y, np.asarray(layer(x, token_mask=MASK)))
        weights, inputs = way(wl.grad(f, argnums=(0, 1)))(layer, wl.asarray(other), mask)
        assert (np.asarray(inputs)[~MASK] == 0).all()
        for one, two in zip(
            wl.tree.leaves((weights, inputs)),
            wl.tree.leaves(wl.grad(f, argnums=(0, 1))(layer, wl.asarray(x), mask)),
            strict=True,
        ):
            assert np.isfinite(np.asarray(one)).all()
            close_array(one, two, 1000)


@every_mixer
def test_lengths_are_masks(name):
    layer = ALL[name][0](wl.float64)
    x, lengths = normal(3, N, E), np.array([2, 5, 0])
    y = layer(x, lengths=lengths)
    np.testing.assert_array_equal(y, layer(x, token_mask=np.arange(N) < lengths[:, None]))
    np.testing.assert_array_equal(y, layer(x, token_mask=(np.arange(N) < lengths[:, None]).astype(np.int32)))
    assert np.isfinite(np.asarray(y)).all()
    assert (np.asarray(y[2]) == 0).all()  # a row without tokens
    close_array(layer(x, lengths=[5, 5, 5]), layer(x))


@free_mixers
def test_a_row_alone_is_the_row_in_a_batch(name):
    """Padded on the right, on the left or not at all: the same tokens come out."""
    layer = FREE[name][0](wl.float64)
    x = normal(3, E)
    junk = normal(2, E, seed=1)
    alone = np.asarray(layer(x))
    right = layer(np.concatenate([x, junk])[None], lengths=[3])
    left = layer(np.concatenate([junk, x])[None], token_mask=[[False] * 2 + [True] * 3])
    close_array(right[0, :3], alone)
    close_array(left[0, 2:], alone)


@pytest.mark.parametrize("name", ["pool", "mixer block", "block of attention", "continuous"])
def test_bad_masks_are_refused(name):
    layer, x = ALL[name][0](None), wl.ones((2, N, E))
    with pytest.raises(InputError, match="one of them"):
        layer(x, token_mask=np.ones((2, N), bool), lengths=[1, 2])
    with pytest.raises(ShapeError, match=r"token_mask of shape \(5,\)"):
        layer(x, token_mask=np.ones(N, bool))
    with pytest.raises(DTypeError, match="true where a token is real"):
        layer(x, token_mask=np.zeros((2, N)))
    with pytest.raises(ShapeError, match="lengths of shape"):
        layer(x, lengths=[1, 2, 3])
    with pytest.raises(ShapeError, match=r"integers of shape \(2,\)"):
        layer(x, lengths=[1.0, 2.0])
    with pytest.raises(InputError, match="lengths from 0 to 5"):
        layer(x, lengths=[1, 6])
    with pytest.raises(ShapeError, match=r"tokens \(\.\.\., time"):
        layer(wl.ones(E))


# --- Fourier


@pytest.mark.book("11.62", name="wl.nn.FourierMixer")
def test_fourier_mixing():
    x = normal(7, 6)
    np.testing.assert_allclose(nn.FourierMixer()(x), np.fft.fft2(x).real, atol=1e-12)
    np.testing.assert_allclose(nn.FourierMixer(channels=False)(x), np.fft.fft(x, axis=0).real, atol=1e-12)
    assert nn.FourierMixer().num_parameters() == 0
    # gaps in the mask: the real tokens as if they stood side by side
    real = np.array([True, False, True, True, False, True, True])
    np.testing.assert_allclose(nn.FourierMixer()(x, token_mask=real)[real], np.fft.fft2(x[real]).real, atol=1e-12)
    assert nn.FourierMixer()(wl.ones((2, 0, 3))).shape == (2, 0, 3)


def test_fourier_of_many_tokens_in_single_precision():
    x = normal(1500, 2).astype(np.float32)
    found = nn.FourierMixer(channels=False)(x[None], lengths=[1499])[0, :1499]
    np.testing.assert_allclose(found, np.fft.fft(x[:1499], axis=0).real, atol=2e-4)


# --- means


def test_pooling():
    x = normal(6, 2)
    window = lambda i, k: x[max(i - k // 2, 0) : i + k // 2 + 1].mean(axis=0)
    for k in (1, 3, 5, 13):
        np.testing.assert_allclose(nn.PoolMixer(k)(x), [window(i, k) - x[i] for i in range(6)], atol=1e-12)
    np.testing.assert_allclose(nn.PoolMixer(None)(x), x.mean(axis=0) - x, atol=1e-12)
    real = np.array([True, False, True, True, True, False])
    y = np.asarray(nn.PoolMixer(3, subtract=False)(x, token_mask=real))
    np.testing.assert_allclose(y[[0, 2, 3, 4]], [x[0], x[2:4].mean(0), x[2:5].mean(0), x[3:5].mean(0)], atol=1e-12)
    assert nn.PoolMixer(None)(wl.ones((2, 0, 3))).shape == (2, 0, 3)
    with pytest.raises(InputError, match="an odd number"):
        nn.PoolMixer(4)


# --- shifts


@pytest.mark.book("11.62", "11.67", name=("wl.nn.TokenShift", "wl.nn.ShiftMixer"))
@pytest.mark.parametrize("s", [-7, -2, -1, 0, 1, 3, 7])
@pytest.mark.parametrize("wrap", [False, True])
def test_the_adjoint_of_a_shift_is_the_reverse_shift(s, wrap):
    x, v = normal(5, 3), normal(5, 3, seed=1)
    layer = nn.TokenShift(s, wrap)
    moved = np.roll(x, s, axis=0)
    if not wrap:  # zeros come in
        moved[: max(s, 0)] = 0
        moved[len(x) + min(s, 0) if -s < len(x) else 0 :] = 0
    np.testing.assert_array_equal(layer(x), moved)
    _, pull_back = wl.vjp(layer, wl.asarray(x))
    np.testing.assert_array_equal(pull_back(wl.asarray(v))[0], nn.TokenShift(-s, wrap)(v))


def test_groups_of_channels_are_shifted_by_themselves():
    x = normal(5, 7)
    y = np.asarray(nn.TokenShift((1, 0, -1), wrap=True)(x))
    np.testing.assert_array_equal(y[:, :2], np.roll(x[:, :2], 1, axis=0))
    np.testing.assert_array_equal(y[:, 2:4], x[:, 2:4])
    np.testing.assert_array_equal(y[:, 4:], np.roll(x[:, 4:], -1, axis=0))
    assert nn.is_causal(nn.TokenShift((1, 0, 2)), wl.asarray(x))
    assert not nn.is_causal(nn.TokenShift((1, -1)), wl.asarray(x))
    assert nn.is_local(nn.ShiftMixer(7), wl.asarray(x), 1)
    with pytest.raises(InputError, match="no shift"):
        nn.TokenShift(())


@pytest.mark.book("11.62", name="wl.nn.ShiftMixer")
def test_the_mixer_of_s2_mlp():
    layer = nn.ShiftMixer(6, dtype=wl.float64)
    x = wl.asarray(normal(5, 6))
    h = np.asarray(F.gelu(x @ layer.before.weight + layer.before.bias).detach())
    h = np.concatenate([np.pad(h[:-1, :3], ((1, 0), (0, 0))), np.pad(h[1:, 3:], ((0, 1), (0, 0)))], axis=1)
    close_array(layer(x), h @ layer.after.weight + layer.after.bias)


# --- blocks


@pytest.mark.book("11.60", name="wl.nn.MixingBlock")
def test_the_block_is_its_formula():
    x = wl.asarray(normal(2, N, E))
    mixer = nn.ShiftMixer(E, dtype=wl.float64)
    block = nn.MixingBlock(mixer, E, norm="rms", dtype=wl.float64)
    h = x + mixer(F.rms_norm(x, (E,)))
    close_array(block(x), h + block.channel_mixer(F.rms_norm(h, (E,))))
    other = nn.MixingBlock(mixer, E, block.channel_mixer, norm=None, first="channels")
    h = x + block.channel_mixer(x)
    close_array(other(x), h + mixer(h))
    own = nn.MixingBlock(mixer, E, norm=lambda e: nn.LayerNorm(e, elementwise_affine=False))
    assert own.num_parameters() == block.num_parameters() - 2 * E


def test_bad_settings_of_blocks():
    with pytest.raises(InputError, match="norm='batch'"):
        nn.MixingBlock(nn.Identity(), E, norm="batch")
    with pytest.raises(InputError, match="first='both'"):
        nn.MixingBlock(nn.Identity(), E, first="both")
    with pytest.raises(ShapeError, match="mixers that keep the shape"):
        nn.MixingBlock(nn.Linear(E, E + 1), E)(wl.ones((2, N, E)))
    with pytest.raises(ShapeError, match=r"\(\.\.\., time, 4\)"):
        nn.MixingBlock(nn.Identity(), E)(wl.ones((2, N, E + 1)))


@pytest.mark.book("11.61", name="wl.nn.MixerBlock")
def test_the_mixer_of_the_book():
    """H = MLP(H) + H, then H = [MLP(H') + H']', in the book without normalization."""
    x = wl.asarray(normal(2, N, E))
    block = nn.MixerBlock(N, E, 3, 6, norm=None, first="channels", dtype=wl.float64)
    tokens, channels = block.token_mixer.mlp, block.channel_mixer
    h = channels(x) + x
    close_array(block(x), (tokens(h.mT) + h.mT).mT)
    usual = nn.MixerBlock(N, E, 3, 6, dtype=wl.float64)
    tokens, channels, normed = usual.token_mixer.mlp, usual.channel_mixer, lambda a: F.layer_norm(a, (E,))
    h = x + tokens(normed(x).mT).mT
    close_array(usual(x), h + channels(normed(h)))


@pytest.mark.book("11.61", name=("wl.nn.MixerBlock", "wl.nn.TokenMLP"))
def test_a_mixer_is_tied_to_its_tokens():
    for layer in (nn.MixerBlock(N, E), nn.TokenMLP(N, 3), nn.GMLPBlock(N, E), nn.SpatialGatingUnit(N, E)):
        with pytest.raises(ShapeError, match=rf"{N + 1} tokens"):
            layer(wl.ones((2, N + 1, E)))
    # what it computes depends on the order of the tokens
    x, turned = normal(N, E), [1, 2, 3, 4, 0]
    block = nn.MixerBlock(N, E, dtype=wl.float64)
    assert nn.check_equivariance(block, x, lambda a: wl.asarray(a)[turned]).interior > 1e-3
    # parameters and multiply-adds grow linearly with n for fixed hidden sizes, by closed form
    sizes = [nn.MixerBlock(n, E, 3, 6).num_parameters() for n in (1, 2, 4, 8)]
    assert np.diff(sizes).tolist() == [7 * k for k in (1, 2, 4)]
    work = [wl.count(nn.MixerBlock(n, E, 3, 6), wl.ones((n, E))).multiply_adds for n in (4, 8, 16, 32)]
    assert np.diff(np.diff(work) / [4, 8, 16]).tolist() == [0, 0]
