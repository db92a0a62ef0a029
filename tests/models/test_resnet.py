"""Residual networks: sizes of the known ones, stems, blocks, and how they start."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError, ShapeError
from wonderland.models import ResNet, cifar_resnet, resnet18, resnet34, resnet50, small_resnet

F = nn.functional


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def abstract(make, **settings):
    """The model without its numbers."""
    return wl.eval_shape(lambda: make(**settings))


def basic(i, o, projected):
    return 9 * i * o + 9 * o * o + 4 * o + (i * o + 2 * o if projected else 0)


def bottleneck(i, o, projected):
    n = o // 4
    return i * n + 9 * n * n + n * o + 4 * n + 2 * o + (i * o + 2 * o if projected else 0)


def closed_form(block, depths, widths, stem, classes=1000):
    """The parameters of a residual network with a 7 x 7 stem."""
    total, before = 49 * 3 * stem + 2 * stem, stem
    for i, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        for j in range(depth):
            total += block(before, width, not j and (i > 0 or before != width))
            before = width
    return total + (before + 1) * classes


@pytest.mark.book("9-103", name=("wl.models.resnet18", "wl.models.resnet34", "wl.models.resnet50"))
@pytest.mark.parametrize(
    "make, count, block, depths, widths",
    [
        (resnet18, 11_689_512, basic, (2, 2, 2, 2), (64, 128, 256, 512)),
        (resnet34, 21_797_672, basic, (3, 4, 6, 3), (64, 128, 256, 512)),
        (resnet50, 25_557_032, bottleneck, (3, 4, 6, 3), (256, 512, 1024, 2048)),
    ],
)
def test_known_networks_have_their_known_sizes(make, count, block, depths, widths):
    model = abstract(make)
    assert model.num_parameters() == count == closed_form(block, depths, widths, 64)
    ten = abstract(make, num_classes=10)
    assert ten.num_parameters() == count - 990 * (widths[-1] + 1)


@pytest.mark.book("9-103", name=("wl.models.cifar_resnet", "wl.models.ResNet"))
def test_networks_for_small_images():
    for depth, n in ((20, 3), (56, 9)):
        model = abstract(cifar_resnet, depth=depth)
        weighted = [m for m in model.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
        projections = [m for m in weighted if isinstance(m, nn.Conv2d) and m.kernel_size == 1]
        assert len(weighted) - len(projections) == depth == 6 * n + 2
        assert [len(stage) for stage in model.backbone][1:] == [n] * 3
    small = cifar_resnet(8)
    assert [row.shape for row in small.summary((2, 32, 32, 3)).rows if row.kind == "BasicBlock"] == [
        (2, 32, 32, 16),
        (2, 16, 16, 32),
        (2, 8, 8, 64),
    ]
    with pytest.raises(InputError, match="depth=21 is not 6n"):
        cifar_resnet(21)


@pytest.mark.book("9-88", name="wl.models.ResNet")
def test_the_stem_makes_images_smaller():
    large = ResNet((1,), (4,), 10, 1)
    assert large.backbone[0].output_shape((2, 224, 224, 1)) == (2, 56, 56, 4)
    assert ResNet((1,), (4,), 10, 1, stem="half").backbone[0].output_shape((2, 28, 28, 1)) == (2, 14, 14, 4)
    assert ResNet((1,), (4,), 10, 1, stem="small").backbone[0].output_shape((2, 28, 28, 1)) == (2, 28, 28, 4)
    own = nn.Conv2d(1, 6, 4, stride=4)
    model = ResNet((1,), (4,), 10, 1, stem=own, stem_channels=6)
    assert model.backbone[0] is own
    assert model(wl.ones((2, 28, 28, 1))).shape == (2, 10)
    assert not any(isinstance(m, nn.Residual) for m in large.backbone[0].modules())


@pytest.mark.book("9-89", name="wl.nn.BottleneckBlock")
def test_the_bottleneck():
    block = abstract(nn.BottleneckBlock, channels=256)
    convs = [m for m in block.modules() if isinstance(m, nn.Conv2d)]
    assert [m.weight.shape for m in convs] == [(1, 1, 256, 64), (3, 3, 64, 64), (1, 1, 64, 256)]
    assert sum(m.weight.size for m in convs) == 69632
    assert block.num_parameters() == bottleneck(256, 256, False)
    x = numbers(2, 5, 5, 8)
    small = nn.BottleneckBlock(8).eval()
    f = small.residual.f
    h = x
    for i in (0, 3, 6):
        h = f[i + 1](F.conv2d(h, f[i].weight, padding=1 if i == 3 else 0))
        h = wl.relu(h) if i < 6 else h
    np.testing.assert_allclose(small(x), x + h, rtol=1e-5, atol=1e-5)
    assert nn.BottleneckBlock(8, 16, stride=2)(x).shape == (2, 3, 3, 16)
    assert nn.lint(small) == []
    with pytest.raises(InputError, match="reduction=0"):
        nn.BottleneckBlock(8, reduction=0)


@pytest.mark.book("9-91", name=("wl.nn.BottleneckBlock", "wl.models.ConvNeXtBlock"))
def test_resnext_is_the_bottleneck_in_groups():
    grouped = abstract(nn.BottleneckBlock, channels=256, width=128, groups=32)
    assert [m.groups for m in grouped.modules() if isinstance(m, nn.Conv2d)] == [1, 32, 1]
    assert grouped.num_parameters() == 256 * 128 + 9 * 128 * 4 + 128 * 256 + 2 * (128 + 128 + 256)
    kinds = [type(m).__name__ for m in wl.models.ConvNeXtBlock(8).modules()]  # which is another design
    assert "BatchNorm2d" not in kinds
    assert {"LayerNorm", "GELU"} <= set(kinds)


@pytest.mark.book("9-83", "9-87", name="wl.models.ResNet")
def test_a_network_starts_as_its_shortcuts():
    x = numbers(2, 12, 12, 1)
    model = ResNet((2, 1), (4, 8), 3, 1, stem="small", post_act=False)
    h = model.backbone[0](x)
    projection = model.backbone[2][0].residual.shortcut
    np.testing.assert_allclose(model.features(x), projection(h), rtol=1e-5, atol=1e-5)
    busy = ResNet((2, 1), (4, 8), 3, 1, stem="small", post_act=False, zero_init=False)
    assert np.abs(busy.features(x) - busy.backbone[2][0].residual.shortcut(busy.backbone[0](x))).max() > 0.01
    assert not (ResNet((1,), (4,), 3, 1, stem="small", zero_init=False).features(x) < 0).any()  # ReLU after the sum
    assert (busy.features(x) < 0).any()


def test_eager_and_compiled_steps_agree():
    x, y = numbers(4, 9, 9, 1), wl.tensor([0, 1, 2, 0])

    def step(model, optimizer, x, y):
        loss, grads = wl.value_and_grad(lambda model: F.cross_entropy(model(x), y))(model)
        optimizer.step(grads)
        return loss

    found = []
    for run in (step, wl.jit(step)):
        model = small_resnet(3, channels=(4,), key=wl.random.key(0))
        optimizer = wl.optim.SGD(model, lr=0.1)
        losses = [float(run(model, optimizer, x, y)) for _ in range(3)]
        found.append((losses, {path: value.numpy() for path, value in model.state_dict().items()}))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4)
    for path, value in found[0][1].items():
        np.testing.assert_allclose(found[1][1][path], value, rtol=1e-3, atol=1e-4, err_msg=path)


def test_keys_and_saving():
    x = numbers(2, 9, 9, 1)
    first, again, other = (small_resnet(3, channels=(4,), key=wl.random.key(k)).eval() for k in (0, 0, 1))
    np.testing.assert_array_equal(first(x), again(x))
    assert (np.asarray(first(x)) != np.asarray(other(x))).any()
    other.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(other(x), first(x))
    assert first(x[0]).shape == (3,)
    with pytest.raises(ShapeError, match=r"3 channels(.|\n)*backbone"):
        first(wl.ones((2, 9, 9, 3)))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ResNet((1, 1), (4,)), "2 depths and 1 channels"),
        (lambda: ResNet((), ()), "0 depths"),
        (lambda: ResNet((0,), (4,)), "a depth=0"),
        (lambda: ResNet((1,), (4,), block="bsaic"), "block='bsaic'"),
        (lambda: ResNet((1,), (4,), stem="huge"), "stem='huge'"),
    ],
)
def test_settings_that_make_no_network(make, message):
    with pytest.raises((InputError, ModuleError), match=message):
        make()
