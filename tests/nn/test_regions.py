"""The linear regions of rectifier networks, and how many there can be."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError

R = nn.regions


def plane(n=60, reach=3.0):
    axis = np.linspace(-reach, reach, n)
    return wl.asarray(np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2))


@pytest.mark.book("A2-44", name=("wl.models.RectifierNet", "wl.nn.regions.activation_patterns"))
def test_within_a_pattern_a_rectifier_net_is_linear():
    net = wl.models.RectifierNet(2, [5, 5], 2, dtype=wl.float64, key=wl.random.key(1))
    assert [type(layer).__name__ for layer in net.layers] == ["Linear", "ReLU"] * 3  # after the last layer, too
    x = plane(12)
    patterns = R.activation_patterns(net, x)
    assert patterns.shape == (144, 12)
    jacobians = np.asarray(wl.vmap(wl.jacobian(net))(x))
    by_pattern = {}
    for pattern, J, point in zip(patterns, jacobians, x, strict=True):
        first, where = by_pattern.setdefault(pattern.tobytes(), (J, point))
        np.testing.assert_allclose(J, first, atol=1e-12)  # one Jacobian for each pattern
        np.testing.assert_allclose(net(point) - net(where), J @ (point - where), atol=1e-12)
    assert R.linear_regions(net, x) == len(by_pattern) > 5
    assert (net(x) >= 0).all()


@pytest.mark.book("A2-45", name=("wl.nn.regions.linear_regions", "wl.nn.regions.region_upper_bound"))
@pytest.mark.parametrize("seed", range(3))
def test_there_are_no_more_regions_than_the_bound(seed):
    net = wl.models.MLP(2, [3, 4], 1, dtype=wl.float64, key=wl.random.key(seed))
    found = R.linear_regions(net, plane())
    assert 1 < found <= R.region_upper_bound(2, [3, 4]) <= 2**7


def test_lines_cut_a_plane_into_as_many_pieces_as_they_can():
    # three lines in general position: 1 + 3 + 3 pieces of the 2^3 patterns
    W, b = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]), np.array([0.1, 0.2, -0.5])
    model = nn.Sequential(nn.Linear.from_matrix(W, b), nn.ReLU())
    assert R.linear_regions(model, plane()) == R.region_upper_bound(2, [3]) == 7
    # with as many inputs as units all patterns are reached
    corners = wl.asarray(np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), axis=-1).reshape(-1, 3))
    assert R.linear_regions(nn.Sequential(nn.Linear.from_matrix(np.eye(3)), nn.ReLU()), corners) == 2**3
    assert R.region_upper_bound(3, [3]) == 2**3


@pytest.mark.book("A2-46", "A2-47", name=("wl.nn.regions.region_growth", "wl.nn.regions.region_lower_bound"))
def test_the_bound_from_below():
    Z, D, L = 4, 2, 3
    assert R.region_growth(D, Z, L) == (Z // D) ** ((L - 1) * D) * Z**D == 256
    # a binomial in place of Z / D would be above the bound from above, of 12 hidden units
    assert math.comb(Z, D) ** ((L - 1) * D) * Z**D == 20736 > 2 ** (Z * L) == 4096
    assert R.region_lower_bound(D, Z, L) <= R.region_growth(D, Z, L) <= R.region_upper_bound(D, [Z] * L)
    for z, d, layers in [(2, 1, 4), (6, 2, 2), (5, 5, 3), (9, 4, 2)]:
        assert R.region_lower_bound(d, z, layers) <= R.region_upper_bound(d, [z] * layers) <= 2 ** (z * layers)
    # polynomial in the width, exponential in the depth
    assert R.region_growth(2, 40, 3) / R.region_growth(2, 20, 3) == 2**6
    assert R.region_growth(2, 4, 5) / R.region_growth(2, 4, 4) == 2**2
    with pytest.raises(InputError, match="width of 1 is below the 2 inputs"):
        R.region_lower_bound(2, 1, 3)


@pytest.mark.book("A2-46", name="wl.nn.regions.region_lower_bound")
def test_folding_reaches_the_bound():
    """Each layer of two units folds the interval in the middle, so that the next one works on both halves at once."""
    depth = 4
    fold = nn.Linear.from_matrix([[1.0, 1.0]], [0.0, -0.5])  # relu(x), relu(x - 1/2)
    again = [[2.0, 2.0], [-4.0, -4.0]]  # 2 relu(x) - 4 relu(x - 1/2), for both units of the next layer
    layers = [fold, nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear.from_matrix(again, [0.0, -0.5]), nn.ReLU()]
    model = nn.Sequential(*layers)
    x = wl.asarray(np.linspace(-0.3, 1.0, 5000)[1:-1, None])
    found = R.linear_regions(model, x)
    assert found >= 2**depth
    assert found <= R.region_upper_bound(1, [2] * depth) == 3**depth
    assert R.region_lower_bound(1, 2, depth) == 2 ** (depth - 1) * 3


def test_what_cannot_be_counted():
    with pytest.raises(ModuleError, match=r"Tanh\(\) is not piecewise linear"):
        R.linear_regions(nn.Sequential(nn.Linear(2, 3), nn.Tanh()), plane(3))
    with pytest.raises(ModuleError, match=r"functions cannot be seen(.|\n)*wl\.nn\.ReLU"):
        R.linear_regions(nn.Sequential(nn.Linear(2, 3), wl.relu), wl.ones((3, 2)))
    leaky = nn.Sequential(nn.Linear(2, 3), nn.LeakyReLU(), nn.Linear(3, 3), nn.Activation(wl.relu))
    assert R.activation_patterns(leaky, wl.ones((4, 2))).shape == (4, 6)
