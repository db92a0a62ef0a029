"""The construction of appendix B: steps, bins, towers, and straight lines."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError
from wonderland.models import bin_function, neurons_needed, relu_interpolant, step_neuron
from wonderland.models import universal_approx as in_many_dimensions
from wonderland.models import universal_approx_1d as approximate


def f64(*values):
    return wl.tensor(list(values), wl.float64)


def sinc(x):
    return np.sinc(np.asarray(x) / np.pi)  # sin(x) / x, and 1 at 0


def errors(net, g, low, high, n=1000):
    """The mean squared and the largest error on a grid."""
    x = np.linspace(low, high, n)
    error = np.asarray(net(wl.asarray(x[:, None])))[:, 0] - g(x)
    return np.mean(error**2), np.abs(error).max()


@pytest.mark.book("B.02", "B.03", name="wl.models.step_neuron")
def test_a_steep_neuron_is_a_step():
    assert step_neuron(f64(0.3), a=3.0, s=0.3, w=50.0).item() == 1.5  # half its amplitude at its shift
    x = wl.asarray(np.linspace(-1, 1, 9))
    np.testing.assert_allclose(step_neuron(x, 2.0, 0.3, 5.0), 2.0 * wl.sigmoid(5.0 * x - 5.0 * 0.3), rtol=1e-12)
    np.testing.assert_allclose(step_neuron(f64(0.299, 0.301), s=0.3, w=1e4), [4.5e-5, 0.99995], rtol=0.02)
    widths = [
        np.ptp([x for x in np.linspace(0, 1, 2001) if 0.1 < step_neuron(x, s=0.5, w=w).item() < 0.9]) for w in (10, 100)
    ]
    assert widths[0] == pytest.approx(10 * widths[1], rel=0.05)  # ten times the slope, a tenth of the width


@pytest.mark.book("B.04", "B.05", name="wl.models.bin_function")
def test_two_steps_are_a_bin():
    x = f64(-0.3, -0.1, 0.2, 0.5, 0.7)
    for a in (1.0, -2.5):
        np.testing.assert_allclose(bin_function(x, a, 0.2, 0.8), [0, a, a, a, 0], atol=1e-12)
    printed = step_neuron(0.2, 1.0, 0.6) - step_neuron(0.2, 1.0, -0.2)  # with the signs of the book
    assert printed.item() == pytest.approx(-1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far = bin_function(f64(-10.0, 10.0), w=1e5)
    assert far.tolist() == [0.0, 0.0]
    with pytest.raises(InputError, match="width=0"):
        bin_function(0.0, width=0)


@pytest.mark.book("B.06", name="wl.models.bin_function")
def test_bins_that_do_not_meet_do_not_interact():
    x = wl.asarray(np.linspace(0, 1, 101) + 1e-3)
    one, two = bin_function(x, 0.5, 0.2, 0.2), bin_function(x, -1.0, 0.7, 0.3)
    both = (one + two).numpy()
    inside = np.abs(x.numpy() - 0.2) < 0.09
    np.testing.assert_allclose(both[inside], 0.5, atol=1e-9)
    np.testing.assert_allclose(both[np.abs(x.numpy() - 0.7) < 0.14], -1.0, atol=1e-9)
    assert not np.any(np.abs(one * two) > 1e-9)


@pytest.mark.book("B.01", "B.08", "5.25", "B5-09", "A2-41", name="wl.models.universal_approx_1d")
def test_a_hidden_layer_of_sigmoids_comes_as_close_as_one_likes():
    g = lambda x: np.sin(3 * x) + 0.5 * x
    for eps in (0.3, 0.1, 0.03):
        m = int(np.ceil(2 * 3.5 * 2 / eps))  # a bin is half as high as its slope allows
        net = approximate(g, 0.0, 2.0, m)
        assert net.widths == (1, 2 * m, 1)  # exactly two neurons for each bin
        assert [type(layer).__name__ for layer in net.layers] == ["Linear", "Sigmoid", "Linear"]
        assert errors(net, g, 0.0, 2.0)[1] <= eps
    assert isinstance(net, wl.models.MLP)
    x = wl.asarray(np.linspace(0, 2, 7)[:, None])
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(net, x), net(x), atol=1e-9)


@pytest.mark.book("B.09", name="wl.models.universal_approx_1d")
@pytest.mark.parametrize("m, figure, midpoints", [(5, 0.0218, 0.0148), (15, 0.00200, 0.00175), (50, 0.00016, 0.000158)])
def test_the_figure_of_the_book(m, figure, midpoints):
    # the figure centres a bin at each end, and does not make these bins longer
    assert errors(approximate(sinc, 0.0, 10.0, m, centres="linspace"), sinc, 0.0, 10.0)[0] == pytest.approx(
        figure, rel=0.1
    )
    assert errors(approximate(sinc, 0.0, 10.0, m), sinc, 0.0, 10.0)[0] == pytest.approx(midpoints, rel=0.1)


@pytest.mark.book("B.07", name="wl.models.universal_approx_1d")
def test_bins_have_to_cover_the_interval():
    def printed(m):  # bins around i / m for i = 1 .. m leave the first half bin out
        width = 10 / m
        x, total = np.linspace(0, 10, 1000), 0.0
        for centre in width * np.arange(1, m + 1):
            height = sinc(centre + width * (np.arange(100) + 0.5 - 50) / 100).mean()
            total = total + np.asarray(bin_function(wl.asarray(x), height, centre, width))
        return np.mean((total - sinc(x)) ** 2)

    found = [printed(m) for m in (5, 15, 50)]
    np.testing.assert_allclose(found, [0.104, 0.035, 0.010], rtol=0.06)
    for m, bad in zip((5, 15, 50), found, strict=True):
        assert errors(approximate(sinc, 0.0, 10.0, m), sinc, 0.0, 10.0)[0] < bad / 5
    # heights are means over the bins
    net = approximate(lambda x: x**2, 1.0, 3.0, 4)
    heights = net.layers[2].weight.numpy()[::2, 0]
    edges = np.linspace(1, 3, 5)
    np.testing.assert_allclose(heights, np.diff(edges**3) / 3 / 0.5, rtol=1e-12)


@pytest.mark.book("B.10", name="wl.models.universal_approx_1d")
def test_the_squared_error_falls_with_the_square_of_the_number_of_bins():
    squared, largest = zip(
        *[errors(approximate(sinc, 0.0, 10.0, m), sinc, 0.0, 10.0) for m in (50, 100, 200)], strict=True
    )
    np.testing.assert_allclose(squared, [1.58e-4, 3.92e-5, 9.67e-6], rtol=0.05)
    np.testing.assert_allclose(largest, [0.043, 0.021, 0.0106], rtol=0.08)


@pytest.mark.book("B.11", name="wl.models.universal_approx_1d")
def test_the_ends_need_longer_bins():
    for m in (10, 100):
        cut = approximate(sinc, 0.0, 10.0, m, extend=False)
        assert errors(cut, sinc, 0.0, 10.0)[1] == pytest.approx(0.5, abs=0.05)  # however many bins
        assert cut(wl.zeros((1, 1)))[0, 0].item() == pytest.approx(0.5, abs=0.05)  # a sigmoid of 0 is one half
    assert errors(approximate(sinc, 0.0, 10.0, 200), sinc, 0.0, 10.0)[1] < 0.011
    with np.errstate(invalid="ignore"), pytest.raises(InputError, match="not finite"):
        relu_interpolant(lambda x: np.sin(x) / x, 0.0, 10.0)


@pytest.mark.book("5.26", "B.12", "A2-41", name="wl.models.relu_interpolant")
def test_straight_lines_converge_faster():
    g = np.sin
    largest = []
    for m in (10, 20, 40):
        net = relu_interpolant(g, 0.0, 4.0, m)
        assert net.widths == (1, m, 1)
        nodes = np.linspace(0, 4, m + 1)
        np.testing.assert_allclose(net(wl.asarray(nodes[:, None]))[:, 0], g(nodes), atol=1e-12)
        x = np.linspace(0, 4, 501)
        np.testing.assert_allclose(net(wl.asarray(x[:, None]))[:, 0], np.interp(x, nodes, g(nodes)), atol=1e-12)
        largest.append(errors(net, g, 0.0, 4.0)[1])
        assert largest[-1] <= (4 / m) ** 2 / 8
    np.testing.assert_allclose(np.array(largest[:-1]) / largest[1:], 4.0, rtol=0.1)  # a quarter for twice as many


@pytest.mark.book("B.12", name=("wl.models.universal_approx", "wl.models.neurons_needed"))
def test_towers_of_two_inputs_and_their_number():
    g = lambda x: np.sin(3 * x[:, 0]) * x[:, 1]
    rng = np.random.default_rng(0)
    points = rng.uniform([0.0, -1.0], [1.0, 1.0], size=(400, 2))
    worst = []
    for m in (4, 12):
        net = in_many_dimensions(g, [0.0, -1.0], [1.0, 1.0], m)
        assert sum(net.widths[1:-1]) == neurons_needed(m, 2) == 4 * m + m**2
        worst.append(np.abs(np.asarray(net(wl.asarray(points)))[:, 0] - g(points)).max())
    assert worst[1] < 0.4 * worst[0] < 0.4 * 0.6
    assert [neurons_needed(10, d) for d in (1, 2, 3)] == [20, 40 + 100, 60 + 1000]  # exponential in the inputs
    corner = net(wl.asarray([[0.0, -1.0], [1.0, 1.0]]))
    assert np.abs(corner[:, 0] - g(np.array([[0.0, -1.0], [1.0, 1.0]]))).max() < 0.4


@pytest.mark.parametrize("make", [approximate, relu_interpolant])
def test_bad_intervals_and_functions(make):
    with pytest.raises(InputError, match=r"low=1\.0 is not below high=1\.0"):
        make(np.sin, 1.0, 1.0)
    with pytest.raises(InputError, match="m=0"):
        make(np.sin, 0.0, 1.0, 0)
    with pytest.raises(InputError, match=r"g gave the shape \(\)"):
        make(lambda x: 1.0, 0.0, 1.0)


def test_other_bad_settings():
    with pytest.raises(InputError, match="centres='ends'"):
        approximate(np.sin, centres="ends")
    with pytest.raises(InputError, match="corners of a box"):
        in_many_dimensions(np.sin, [0.0], [1.0, 2.0])
