"""LeNet, AlexNet, VGG, ConvNeXt, autoencoders of images and U-shaped networks: sizes, shapes, and that they learn."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError
from wonderland.models import VGG, AlexNet, ConvAutoencoder, ConvNeXt, ConvNeXtBlock, LeNet, UNet, vgg

F = nn.functional


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def abstract(make, **settings):
    """The model without its numbers."""
    return wl.eval_shape(lambda: make(**settings))


def train(model, loss, steps, lr):
    optimizer = wl.optim.Adam(model, lr=lr)

    @wl.jit
    def step(model, optimizer):
        value, grads = wl.value_and_grad(loss)(model)
        optimizer.step(grads)
        return value

    return [float(step(model, optimizer)) for _ in range(steps)]


# --- LeNet and AlexNet


def test_lenet():
    model = LeNet()
    sizes = [(25 + 1) * 6, (150 + 1) * 16, (400 + 1) * 120, 121 * 84, 85 * 10]
    assert model.num_parameters() == sum(sizes) == 61706
    shapes = [row.shape for row in model.summary((2, 28, 28, 1)).rows if row.kind in ("Conv2d", "MaxPool2d")]
    assert shapes == [(2, 28, 28, 6), (2, 14, 14, 6), (2, 10, 10, 16), (2, 5, 5, 16)]
    original = LeNet(10, (28, 28), "tanh", "avg").eval()
    x = numbers(2, 28, 28, 1)
    h = x
    for i, padding in ((0, 2), (3, 0)):
        conv = original.backbone[i]
        h = F.avg_pool2d(wl.tanh(F.conv2d(h, conv.weight, conv.bias, padding=padding)), 2)
    np.testing.assert_allclose(original.embed(x), h.numpy().reshape(2, -1), rtol=1e-5, atol=1e-6)
    assert LeNet(3, (8, 8, 3))(wl.ones((2, 8, 8, 3))).shape == (2, 3)
    assert LeNet(3, (20, 13, 1))(wl.ones((2, 20, 13, 1))).shape == (2, 3)
    with pytest.raises(InputError, match="pool='median'"):
        LeNet(pool="median")
    with pytest.raises(ShapeError, match="3 x 28 pixels"):
        LeNet(image_size=(3, 28))


@pytest.mark.book("9-03", "9-01", name=("wl.models.AlexNet", "wl.eval_shape", "wl.metrics.topk_error"))
def test_alexnet():
    model, grouped = abstract(AlexNet), abstract(AlexNet, grouped=True)
    assert model.num_parameters() == 61_100_840
    assert grouped.num_parameters() == 60_965_224
    for network in (model, grouped):
        kinds = [type(m).__name__ for m in network.modules()]
        assert (kinds.count("Conv2d"), kinds.count("Linear")) == (5, 3)
    assert wl.eval_shape(lambda: AlexNet(grouped=True)(wl.zeros((1, 224, 224, 3)))).shape == (1, 1000)
    scores = numbers(2000, 1000)  # what guessing gives, against 28 %, 26 % and then 15.3 % of the winners
    assert wl.metrics.topk_error(scores, wl.zeros(2000, dtype=wl.int64), k=5) == pytest.approx(0.995, abs=0.005)


# --- VGG


@pytest.mark.book("7-46", name=("wl.models.VGG", "wl.models.vgg"))
def test_vgg_doubles_its_channels():
    model = abstract(vgg, layers=16)
    assert model.num_parameters() == 138_357_544
    assert abstract(vgg, layers=11).num_parameters() == 132_863_336
    blocks = [[m for m in block.modules() if isinstance(m, nn.Conv2d)] for block in list(model.backbone)[:-1]]
    assert [len(block) for block in blocks] == [2, 2, 3, 3, 3]
    assert [{m.out_channels for m in block} for block in blocks] == [{64}, {128}, {256}, {512}, {512}]
    assert {m.kernel_size for block in blocks for m in block} == {3}
    small = VGG([1, 2], 4, 5, 1, norm="batch", hidden=[6], places=None)
    assert small(wl.ones((2, 12, 8, 1))).shape == (2, 5)
    assert small.num_parameters() == (36 + 8) + (288 + 16) + (576 + 16) + 9 * 6 + 7 * 5
    assert VGG([1], [3], 5, 1, hidden=[], places=2)(wl.ones((2, 12, 8, 1))).shape == (2, 5)
    with pytest.raises(InputError, match="layers=12"):
        vgg(12)
    with pytest.raises(InputError, match="2 convs and 1 channels"):
        VGG([1, 1], [4])


# --- ConvNeXt


@pytest.mark.book("9-90", "9-91", name=("wl.models.ConvNeXtBlock", "wl.models.ConvNeXt"))
def test_the_block_of_convnext():
    f = ConvNeXtBlock(96).residual.f
    assert f[0].num_parameters() == 7 * 7 * 96 + 96 == 4800
    assert f[2].num_parameters() + f[4].num_parameters() == 96 * 384 + 384 + 384 * 96 + 96 == 74208
    block = ConvNeXtBlock(4, kernel_size=3, layer_scale=0.5)
    x = numbers(2, 6, 5, 4)
    depthwise, norm, first, _, second, scale = block.residual.f
    h = np.zeros((2, 8, 7, 4), np.float32)
    h[:, 1:-1, 1:-1] = x
    w = depthwise.weight.numpy()[:, :, 0]  # one filter for each channel
    h = sum(w[i, j] * h[:, i : i + 6, j : j + 5] for i in range(3) for j in range(3)) + depthwise.bias.numpy()
    h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + norm.eps)
    h = h @ first.weight.numpy() + first.bias.numpy()
    h = np.asarray(F.gelu(wl.asarray(h))) @ second.weight.numpy() + second.bias.numpy()
    np.testing.assert_allclose(block(x), x.numpy() + 0.5 * h, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(scale.weight, [0.5] * 4)
    assert "LayerScale" not in repr(ConvNeXtBlock(4, layer_scale=None))
    with pytest.raises(InputError, match="expansion=0"):
        ConvNeXtBlock(4, expansion=0)


@pytest.mark.book("9-90", "9-103", name=("wl.models.ConvNeXt", "wl.models.convnext_tiny"))
def test_convnext():
    assert abstract(wl.models.convnext_tiny).num_parameters() == 28_589_128
    model = ConvNeXt([1, 2], [4, 8], 3, 1, patch=2, kernel_size=3, drop_path=0.3, layer_scale=None)
    rows = model.summary((2, 12, 12, 1)).rows
    assert [row.shape for row in rows if row.kind == "ConvNeXtBlock"] == [(2, 6, 6, 4)] + [(2, 3, 3, 8)] * 2
    assert [m.p for m in model.modules() if isinstance(m, nn.DropPath)] == pytest.approx([0.15, 0.3])
    x = numbers(6, 12, 12, 1)
    np.testing.assert_array_equal(model.eval()(x), model(x))
    np.testing.assert_allclose(wl.jit(model)(x), model(x), rtol=1e-3, atol=1e-5)
    with pytest.raises(InputError, match="1 depths and 2 channels"):
        ConvNeXt([1], [4, 8])


# --- images as answers


def spots(n, seed=0):
    """Images with a bright square somewhere, and where it is."""
    rng = np.random.default_rng(seed)
    x, place = 0.3 * rng.normal(size=(n, 8, 8, 1)), np.zeros((n, 8, 8), np.int64)
    for k in range(n):
        i, j = rng.integers(0, 6, 2)
        x[k, i : i + 3, j : j + 3] += 1.0
        place[k, i : i + 3, j : j + 3] = 1
    return wl.asarray(x.astype(np.float32)), wl.asarray(place)


def test_convolutional_autoencoder():
    x, _ = spots(64)
    model = ConvAutoencoder(1, [8, 16], code=12, image_size=(8, 8), key=wl.random.key(0))
    assert model.encode(x).shape == (64, 12)
    before = float(model.loss(x))
    model.fit(x, epochs=40, lr=0.01, key=wl.random.key(1))
    assert float(model.loss(x)) < 0.6 * before
    free = ConvAutoencoder(2, [4, 6, 8])
    assert free.output_shape((3, 16, 24, 2)) == (3, 16, 24, 2)
    assert free.encode(wl.ones((16, 24, 2))).shape == (2, 3, 8)
    widths = [(m.in_channels, m.out_channels) for m in free.modules() if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d))]
    assert widths == [(2, 4), (4, 6), (6, 8), (8, 6), (6, 4), (4, 2)]
    with pytest.raises(ShapeError, match="16 x 20 pixels, which 8 does not divide"):
        free(wl.ones((2, 16, 20, 2)))
    with pytest.raises(InputError, match="size of the images"):
        ConvAutoencoder(code=3)
    with pytest.raises(InputError, match="no layer"):
        ConvAutoencoder(channels=[])


@pytest.mark.book("S-13", name=("wl.nn.ConvTranspose1d", "wl.nn.ConvTranspose2d", "wl.nn.ConvTranspose3d"))
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("settings", [{}, {"stride": 2}, {"dilation": 2}])
def test_the_way_up_is_the_transpose_of_the_way_down(axes, settings):
    down = getattr(nn, f"Conv{axes}d")(2, 3, 3, bias=False, dtype=wl.float64, **settings)
    up = getattr(nn, f"ConvTranspose{axes}d")(3, 2, 3, bias=False, dtype=wl.float64, **settings)
    up.weight = down.weight.value
    rng = np.random.default_rng(0)
    x = rng.normal(size=(*[7, 9, 7][:axes], 2))
    y = rng.normal(size=down.output_shape(x.shape))
    np.testing.assert_allclose((down(wl.asarray(x)) * y).sum(), (x * up(wl.asarray(y))).sum(), rtol=1e-10)
    if not settings:
        assert up(wl.asarray(y)).shape[:-1] == tuple(n + 3 - 1 for n in y.shape[:-1])


def test_a_u_shaped_network_marks_pixels():
    x, place = spots(48)
    model = UNet(1, 2, [4, 8], key=wl.random.key(0))
    losses = train(model, lambda model: F.cross_entropy(model(x), place), 60, 0.02)
    assert losses[-1] < 0.3 * losses[0]
    new, truth = spots(32, seed=1)
    found = np.asarray(model.eval()(new)).argmax(-1)
    assert (found == truth.numpy()).mean() > 0.93  # always saying "nothing" gives 0.86
    assert model(new.reshape(2, 16, 8, 8, 1)).shape == (2, 16, 8, 8, 2)
    assert model(new[0]).shape == (8, 8, 2)
    deep = UNet(3, 1, [2, 3, 4], norm=None)
    assert deep.output_shape((2, 8, 12, 3)) == (2, 8, 12, 1)
    shapes = [row.shape for row in deep.summary((2, 8, 12, 3)).rows if row.kind == "ConvBlock"]
    assert shapes == [(2, 8, 12, 2), (2, 4, 6, 3), (2, 2, 3, 4), (2, 4, 6, 3), (2, 8, 12, 2)]
    with pytest.raises(ShapeError, match="8 x 10 pixels, which 4 does not divide"):
        deep(wl.ones((2, 8, 10, 3)))
    with pytest.raises(InputError, match="no level"):
        UNet(channels=[])
