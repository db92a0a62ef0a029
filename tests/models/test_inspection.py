"""What layers of image models give and hold, as numbers and as pictures."""

from __future__ import annotations

import base64
import re
import struct
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import ModuleError, ShapeError
from wonderland.models import CNN, get_activations, show_feature_maps, show_filters
from wonderland.models.networks.inspection import filter_pictures


def pixels(svg):
    """The picture inside an SVG: bytes (h, w, c)."""
    ET.fromstring(svg)
    data = base64.b64decode(re.search(r"base64,([^\"]+)", svg).group(1))
    at, found = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            w, h, _, colour = struct.unpack(">2I2B", body[:10])
        found += body if kind == b"IDAT" else b""
        at += 12 + length
    c = 3 if colour == 2 else 1
    return np.frombuffer(zlib.decompress(found), np.uint8).reshape(h, 1 + w * c)[:, 1:].reshape(h, w, c)


@pytest.mark.book("7-35", name="wl.models.get_activations")
def test_an_activation_map_is_largest_where_the_pattern_is():
    pattern = np.array([[1.0, -1.0, 1.0], [-1.0, 2.0, -1.0], [1.0, -1.0, 1.0]], np.float32)
    image = 0.1 * np.random.default_rng(0).normal(size=(12, 10, 1)).astype(np.float32)
    image[6:9, 2:5, 0] += pattern
    model = nn.Sequential(nn.Conv2d(1, 3, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2))
    weight = model[0].weight.numpy().copy()
    weight[:, :, 0, 1] = pattern
    model[0].weight = wl.asarray(weight)
    maps = get_activations(model, wl.asarray(image), layers="0")["0"][:, :, 1]
    assert maps.shape == (12, 10)
    assert np.unravel_index(np.argmax(maps), maps.shape) == (7, 3)  # the middle of the pattern
    everything = get_activations(model, wl.asarray(image))
    assert list(everything) == ["0", "1", "2"]
    np.testing.assert_array_equal(everything["1"], wl.relu(everything["0"]))
    np.testing.assert_array_equal(everything["2"], model(wl.asarray(image)))


def test_looking_changes_nothing():
    model = CNN(3, 1, [4, 4], norm="batch", dropout=0.5)
    before = {path: value.numpy() for path, value in model.state_dict().items()}
    x = wl.random.normal((5, 8, 8, 1))
    found = get_activations(model, x, layers=["backbone.*.1", "head"])
    assert list(found) == ["backbone.0.1", "backbone.1.1", "head"]
    assert all(module.training for module in model.modules())
    for path, value in model.state_dict().items():
        np.testing.assert_array_equal(value, before[path])
    assert not any(module._hooks for module in model.modules())
    np.testing.assert_array_equal(found["head"], model.eval()(x))
    with pytest.raises(ModuleError, match=r"no layer \['body'\](.|\n)*'backbone'"):
        get_activations(model, x, layers="body")


def test_filters_as_pictures():
    weight = np.zeros((3, 3, 2, 4), np.float32)
    weight[0, 0, 1, 2], weight[2, 2, 0, 3] = 2.0, -1.0
    rows = filter_pictures(wl.asarray(weight))
    assert (rows[1][2][0, 0, 0], rows[0][3][2, 2, 0], rows[0][0][1, 1, 0]) == (1.0, 0.25, 0.5)
    shown = pixels(show_filters(wl.asarray(weight)))
    assert shown.shape == (7, 15, 1)  # two rows of four 3 x 3 pictures, with gaps
    assert (shown[4, 8, 0], shown[2, 14, 0], shown[0, 0, 0]) == (255, 64, 128)
    assert pixels(show_filters(nn.Conv2d(3, 5, 3))).shape == (3, 19, 3)  # in colour
    assert pixels(show_filters(nn.Conv2d(8, 40, 5), most=6)).shape == (35, 35, 1)
    with pytest.raises(ShapeError, match=r"shape \(3, 3\)"):
        show_filters(wl.ones((3, 3)))


def test_feature_maps_as_pictures():
    maps = np.zeros((4, 5, 10))
    maps[1, 2, 0], maps[:, :, 9] = -3.0, np.linspace(-1, 1, 20).reshape(4, 5)
    shown = pixels(show_feature_maps(maps))
    assert shown.shape == (9, 8 * 6 - 1, 1)  # rows of eight
    assert (shown[1, 2, 0], shown[0, 0, 0]) == (0, 255)
    assert (shown[5, 6, 0], shown[8, 10, 0]) == (0, 255)  # map 9 is the second of the second row
    assert pixels(show_feature_maps(wl.ones((4, 5, 3)), most=2)).shape == (4, 11, 1)
    assert show_feature_maps(maps[None]) == show_feature_maps(maps)  # a batch of one
    with pytest.raises(ShapeError, match=r"\(2, 4, 5, 3\)(.|\n)*one image"):
        show_feature_maps(wl.ones((2, 4, 5, 3)))


def test_grids_of_images():
    images = np.arange(5 * 2 * 3).reshape(5, 2, 3, 1).astype(np.uint8)
    shown = pixels(wl.viz.image_grid(images, columns=2, gap=2, zoom=1))
    assert shown.shape == (10, 8, 1)
    np.testing.assert_array_equal(shown[4:6, 5:8], images[3])
    assert (shown[8:, 5:] == 255).all()  # no sixth image
    assert 'width="24"' in wl.viz.image_grid(images[:1], zoom=8)
    for bad in (np.ones((2, 3)), np.ones((2, 4, 4, 2)), np.ones((0, 4, 4, 1)), []):
        with pytest.raises(ShapeError, match="image_grid"):
            wl.viz.image_grid(bad)
