"""Batch normalization in training and inference: statistics, bias, fusion, and what may go wrong."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError

F = nn.functional
rng = np.random.default_rng(0)


@pytest.mark.book("9-55", "9-56", name=("wl.var", "wl.mean", "wl.nn.functional.batch_norm"))
def test_statistics_of_a_batch():
    x = wl.asarray(rng.normal(2.0, 3.0, size=(7, 3)))
    np.testing.assert_allclose(wl.var(x, axis=0), ((x.numpy() - x.numpy().mean(0)) ** 2).sum(0) / 7)
    wl.check_grads(lambda x: (wl.var(x, axis=0) ** 2 + wl.mean(x, axis=0) ** 3).sum(), (x,))
    y = F.batch_norm(x, training=True, eps=0.5).numpy()
    np.testing.assert_allclose(y.mean(0), 0.0, atol=1e-12)
    variance = x.numpy().var(0)
    np.testing.assert_allclose(y.var(0), variance / (variance + 0.5))


@pytest.mark.book("9-57", "A3-73", name="wl.nn.BatchNorm1d")
def test_at_the_start_the_output_is_standard():
    layer = nn.BatchNorm1d(3, dtype=wl.float64)
    x = wl.asarray(rng.normal(2.0, 3.0, size=(50, 3)))
    y = layer(x).numpy()
    np.testing.assert_allclose([y.mean(0), y.std(0)], [np.zeros(3), np.ones(3)], atol=1e-5)
    assert layer.num_parameters() == 6
    layer.weight, layer.bias = wl.tensor([1.0, 2.0, 3.0], wl.float64), wl.tensor([4.0, 5.0, 6.0], wl.float64)
    y = layer(x).numpy()
    np.testing.assert_allclose([y.mean(0), y.std(0)], [[4, 5, 6], [1, 2, 3]], rtol=1e-5)


@pytest.mark.book("9-66", name="wl.nn.BatchNorm2d")
def test_images_are_rows_of_channels():
    x = rng.normal(1.0, 2.0, size=(3, 4, 5, 2))
    images, rows = nn.BatchNorm2d(2, dtype=wl.float64), nn.BatchNorm1d(2, dtype=wl.float64)
    y = images(wl.asarray(x)).numpy()
    np.testing.assert_allclose(y.mean((0, 1, 2)), 0.0, atol=1e-12)
    np.testing.assert_allclose(y.reshape(-1, 2), rows(wl.asarray(x.reshape(-1, 2))), rtol=1e-12)
    np.testing.assert_allclose(images.running_var, rows.running_var, rtol=1e-12)


@pytest.mark.book("9-60", "9-68", "9-69", name="wl.nn.BatchNorm")
@pytest.mark.parametrize("kept, expected", [(0.01, 1.0), (0.99, 0.0956), (0.9, 0.6513)])
def test_conventions_of_momentum(kept, expected):
    """The book keeps the share lambda of the old value, `momentum` is what the new one gets: 1 - lambda."""
    layer = nn.BatchNorm1d(1, momentum=1 - kept, eps=1e-3, dtype=wl.float64)
    x = wl.tensor([[0.0], [2.0]], wl.float64)  # mean 1
    for _ in range(10):
        layer(x)
    np.testing.assert_allclose(layer.running_mean.item(), 1 - kept**10, rtol=1e-12)
    np.testing.assert_allclose(layer.running_mean.item(), expected, atol=1e-4)
    np.testing.assert_allclose(layer.running_var.item(), kept**10 + (1 - kept**10) * 2.0, rtol=1e-12)


@pytest.mark.book("9-70", name=("wl.nn.Buffer", "wl.nn.BatchNorm1d"))
def test_running_statistics_are_state_and_not_trained():
    model = nn.Sequential(nn.BatchNorm1d(3))
    x = wl.random.normal((8, 3))
    optimizer = wl.optim.SGD(model, lr=0.1, weight_decay=0.5)
    grads = wl.grad(lambda model: (model(x) ** 3).sum())(model)
    assert list(grads) == ["0.weight", "0.bias"]
    before = model[0].running_mean.numpy().copy()
    optimizer.step(grads)
    np.testing.assert_array_equal(model[0].running_mean, before)
    assert [path for path, _ in model.named_parameters()] == ["0.weight", "0.bias"]
    state = model.state_dict()
    assert {"0.running_mean", "0.running_var", "0.num_batches_tracked"} <= set(state)
    other = nn.Sequential(nn.BatchNorm1d(3))
    other.load_state_dict(state)
    np.testing.assert_array_equal(other.eval()(x), model.eval()(x))


@pytest.mark.book("A3-75", name=("wl.nn.BatchNorm1d", "wl.nn.diagnostics.variance_report"))
def test_layers_get_signals_of_one_size():
    x = wl.random.normal((64, 32), key=wl.random.key(0))

    def range_of_gradients(norm):
        wl.random.seed(0)
        model = nn.Sequential(*[nn.FCBlock(32, 32, norm) for _ in range(8)])
        rows = nn.diagnostics.variance_report(model, x)
        sizes = [row.gradient_std for row in rows if row.kind == "ReLU"]
        return max(sizes) / min(sizes)

    assert range_of_gradients(None) > 100
    assert range_of_gradients("batch") < 10


@pytest.mark.book("9-71", name="wl.nn.BatchNorm1d")
def test_predictions_do_not_depend_on_the_rest_of_the_batch():
    layer = nn.BatchNorm1d(3)
    x = wl.random.normal((8, 3))
    layer(x)
    assert not np.allclose(layer(x)[:2], layer(x[:2]), atol=1e-2)
    layer.eval()
    np.testing.assert_array_equal(layer(x)[:2], layer(x[:2]))
    np.testing.assert_array_equal(layer(x[::-1])[::-1], layer(x))


@pytest.mark.book("9-72", "A3-74", name="wl.nn.BatchNorm1d")
def test_a_batch_of_one():
    layer = nn.BatchNorm1d(3)
    with pytest.raises(InputError, match=r"1 values per channel.*\n.*a batch of two or more, or model.eval"):
        layer(wl.ones((1, 3)))
    assert layer.eval()(wl.ones((1, 3))).shape == (1, 3)
    layer.train()
    layer.bias = wl.tensor([1.0, 2.0, 3.0])
    same = layer(wl.ones((4, 3)))  # what one example would give: no variance, so the shift alone
    np.testing.assert_allclose(same, np.tile([1.0, 2.0, 3.0], (4, 1)), rtol=1e-6)
    small = [abs(float(layer(wl.random.normal((n, 3))).mean()) - 2.0) for n in (2, 64)]
    assert max(small) < 1e-5
    pair = wl.asarray([[0.0] * 3, [9.0] * 3])
    assert abs(layer.train()(pair) - layer.eval()(pair)).max() > 1.0  # between training and inference


@pytest.mark.book("9-61", "9-62", name="wl.nn.FCBlock")
def test_batch_norm_before_relu_makes_half_of_it_zero():
    x = wl.random.normal((400, 8), key=wl.random.key(0))
    plain, block = nn.FCBlock(8, 16), nn.FCBlock(8, 16, norm="batch")
    assert [type(part).__name__ for part in block] == ["Linear", "BatchNorm1d", "ReLU"]
    plain[0].bias = wl.full((16,), 10.0)
    assert (plain(x) == 0).numpy().mean() < 0.01
    assert block[0].bias is None
    biased = nn.FCBlock(8, 16, norm="batch", bias=True)
    biased[0].bias = wl.full((16,), 10.0)
    np.testing.assert_allclose((biased(x) == 0).numpy().mean(), 0.5, atol=0.05)


@pytest.mark.book("9-63", name=("wl.nn.lint", "wl.nn.FCBlock"))
def test_a_bias_before_batch_norm_is_of_no_use():
    model = nn.Sequential(nn.Linear(3, 4, dtype=wl.float64), nn.BatchNorm1d(4, dtype=wl.float64))
    x = wl.asarray(rng.normal(size=(6, 3)))
    gradient = wl.grad(lambda model: (model(x) ** 3).sum())(model)
    np.testing.assert_allclose(gradient["0.bias"], 0.0, atol=1e-12)
    before = model(x)
    model[0].bias = model[0].bias + 7.0
    np.testing.assert_allclose(model(x), before, rtol=1e-8, atol=1e-10)
    (finding,) = nn.lint(model)
    assert (finding.path, finding.rule) == ("0", "bias-before-norm")
    assert nn.lint(nn.FCBlock(3, 4, norm="batch")) == []
    assert [f.path for f in nn.lint(nn.Sequential(nn.FCBlock(3, 4, norm="batch", bias=True)))] == ["0.0"]
    assert nn.lint(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))) == []


def trained(model, x):
    """Statistics and parameters that are not those of the start."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm):
            module.weight = wl.random.uniform(module.weight.shape, 0.5, 2.0).astype(module.weight.dtype)
            module.bias = wl.random.normal(module.bias.shape).astype(module.bias.dtype)
    for _ in range(3):
        model(x)
    return model.eval()


@pytest.mark.book("9-64", name=("wl.nn.fuse_linear_bn", "wl.nn.fuse_conv_bn", "wl.nn.fuse_bn"))
@pytest.mark.parametrize("bias", [False, True])
def test_fusion(bias):
    x = wl.random.normal((6, 3), dtype=wl.float64)
    pair = nn.Sequential(nn.Linear(3, 4, bias, dtype=wl.float64), nn.BatchNorm1d(4, dtype=wl.float64))
    trained(pair, x)
    np.testing.assert_allclose(nn.fuse_linear_bn(*pair)(x), pair(x), rtol=1e-10)
    images = wl.random.normal((2, 6, 6, 4))
    conv = nn.Sequential(nn.Conv2d(4, 6, 3, bias=bias, groups=2), nn.BatchNorm2d(6), nn.ReLU(), nn.Linear(6, 1))
    trained(conv, images)
    np.testing.assert_allclose(nn.fuse_conv_bn(conv[0], conv[1])(images), conv[:2](images), rtol=1e-4, atol=1e-5)
    fused = nn.fuse_bn(conv)
    np.testing.assert_allclose(fused(images), conv(images), rtol=1e-4, atol=1e-5)
    assert [type(part).__name__ for part in fused] == ["Conv2d", "Identity", "ReLU", "Linear"]
    assert isinstance(conv[1], nn.BatchNorm2d)
    np.testing.assert_allclose(wl.jit(fused)(images), fused(images), rtol=1e-4, atol=1e-5)


@pytest.mark.book("9-67", name="wl.nn.recalibrate_bn")
def test_exact_statistics_by_a_pass_over_the_data():
    data = rng.normal(3.0, 2.0, size=(50, 3))
    model = nn.Sequential(
        nn.BatchNorm1d(3, dtype=wl.float64),
        nn.Dropout(0.5),
        nn.Linear(3, 4, dtype=wl.float64),
        nn.BatchNorm1d(4, dtype=wl.float64),
    )
    parts = [wl.asarray(part) for part in np.split(data, [20, 27, 45])]  # uneven: the law of total variance
    nn.recalibrate_bn(model, [(part, None) for part in parts])
    np.testing.assert_allclose(model[0].running_mean, data.mean(0), rtol=1e-12)
    np.testing.assert_allclose(model[0].running_var, data.var(0), rtol=1e-12)
    assert model[0].num_batches_tracked.item() == 0
    assert all(module.training for module in model.modules())
    assert not any(module._hooks for module in model.modules())
    nn.recalibrate_bn(model, [wl.asarray(data)])  # with all at once, training and inference agree in every layer
    x = wl.asarray(data)
    inference = model.eval()(x)
    model.train()
    model[1].eval()
    np.testing.assert_allclose(inference, model(x), rtol=1e-8, atol=1e-10)


@pytest.mark.book("9-65", name="wl.nn.BatchNorm1d")
def test_batch_norm_trains_at_rates_where_others_diverge():
    x, y = wl.random.normal((32, 6), key=wl.random.key(0)), wl.random.normal((32, 1), key=wl.random.key(1))

    def final(norm, lr):
        wl.random.seed(0)
        layers = []
        for n in (6, 16, 16):
            layers += [nn.Linear(n, 16), *([nn.BatchNorm1d(16)] if norm else []), nn.ReLU()]
        model = nn.Sequential(*layers, nn.Linear(16, 1))
        for module in model.modules():
            if isinstance(module, nn.Linear) and module.out_features == 16:
                module.weight = module.weight * 8.0  # a bad start, which normalization takes back
        optimizer = wl.optim.SGD(model, lr=lr)

        @wl.jit
        def step(model, optimizer):
            loss, grads = wl.value_and_grad(lambda model: F.mse_loss(model(x), y))(model)
            optimizer.step(grads)
            return loss

        losses = [step(model, optimizer).item() for _ in range(60)]
        return losses[-1] / losses[0]

    assert final(norm=True, lr=0.05) < 0.7
    assert not final(norm=False, lr=0.05) < 1.0  # it grew, or overflowed


@pytest.mark.book("9-101", name=("wl.nn.BatchNorm1d", "wl.nn.functional.batch_norm"))
def test_batch_norm_from_elementary_operations():
    class Own(nn.Module):
        def __init__(self, n):
            self.weight, self.bias = nn.Parameter(wl.ones(n)), nn.Parameter(wl.zeros(n))
            self.running_mean, self.running_var = nn.Buffer(wl.zeros(n)), nn.Buffer(wl.ones(n))

        def forward(self, x):
            if self.training:
                mean = x.sum(0) / x.shape[0]
                variance = ((x - mean) ** 2).sum(0) / x.shape[0]
                unbiased = variance * x.shape[0] / (x.shape[0] - 1)
                self.running_mean = 0.9 * self.running_mean + 0.1 * wl.stop_gradient(mean)
                self.running_var = 0.9 * self.running_var + 0.1 * wl.stop_gradient(unbiased)
            else:
                mean, variance = self.running_mean, self.running_var
            return (x - mean) / wl.sqrt(variance + 1e-5) * self.weight + self.bias

    x, own, builtin = wl.random.normal((9, 4)), Own(4), nn.BatchNorm1d(4)
    for layer in (own, builtin):
        layer.weight = wl.tensor([1.0, 2.0, -1.0, 0.5])
    outputs, gradients = zip(
        *[wl.value_and_grad(lambda m, x: (m(x) ** 3).sum(), argnums=(0, 1))(m, x) for m in (own, builtin)], strict=True
    )
    np.testing.assert_allclose(*outputs, rtol=1e-5)
    np.testing.assert_allclose(gradients[0][1], gradients[1][1], rtol=1e-4, atol=1e-5)
    for name, value in gradients[0][0].items():
        np.testing.assert_allclose(value, gradients[1][0][name], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(own.running_mean, builtin.running_mean, rtol=1e-5)
    np.testing.assert_allclose(own.running_var, builtin.running_var, rtol=1e-5)
    np.testing.assert_allclose(own.eval()(x), builtin.eval()(x), rtol=1e-5, atol=1e-6)


def test_bad_input():
    with pytest.raises(ModuleError, match="no running statistics"):
        nn.recalibrate_bn(nn.Linear(2, 2), [])
    with pytest.raises(InputError, match="no batches"):
        nn.recalibrate_bn(nn.BatchNorm1d(2), [])
    with pytest.raises(ModuleError, match="received Linear and LayerNorm"):
        nn.fuse_linear_bn(nn.Linear(2, 2), nn.LayerNorm(2))
    with pytest.raises(ModuleError, match="3 outputs and 2 channels"):
        nn.fuse_linear_bn(nn.Linear(2, 3), nn.BatchNorm1d(2))
    with pytest.raises(ModuleError, match="received Linear"):
        nn.fuse_conv_bn(nn.Linear(2, 2), nn.BatchNorm1d(2))
