"""Whether a graph is a template at some size: at a glance, and by comparing everything, with the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.ir.at_size import Outline, at_size, numbers_at
from wonderland.ir.graph import Graph
from wonderland.ir.sizes import RANGES, VaryingError, generalised
from wonderland.transforms.jit.jit import traced_as

W = wl.ones((3, 4))
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "mean and variance": lambda x: (x.mean(axis=0), x.var(axis=0), x.mean()),
    "products": lambda x: wl.transpose(x) @ wl.tanh(x @ W) / x.shape[0],
    "numbers": lambda x: x / x.shape[0] + wl.full(x.shape, 1 / x.shape[0]) - 2 * x.shape[0],
    "shapes": lambda x: wl.zeros((2 * x.shape[0], 3)).reshape(-1, 6) + x.reshape(x.shape[0], 3)[:, :1],
    "gradient": wl.grad(lambda x: (wl.softmax(x @ W) ** 2).mean()),
}


def graph(f: Callable[[Any], Any], n: int) -> Graph:
    return traced_as("test", lambda x: f(x), (wl.ones((n, 3)),), {})[0].graph


def outline(f: Callable[[Any], Any]) -> Outline:
    return Outline(generalised(graph(f, 20), graph(f, 33), (20, 33), RANGES[0]))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", [2, 20, 33, 47])
def test_the_quick_way_finds_what_the_other_finds(name: str, n: int) -> None:
    f = FUNCTIONS[name]
    expected = outline(f)
    found = expected.numbers(graph(f, n), n)
    wanted = numbers_at(expected.template, graph(f, n), n)
    assert found is not None
    assert len(found) == len(wanted) == expected.template.count
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert expected.numbers(graph(f, n), n + 1) is None


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x.mean(axis=1),
        lambda x: x.mean(axis=0) + 1,
        lambda x: x.mean(axis=0).astype("float64"),
        lambda x: wl.max(x, axis=0),
        lambda x: (x.mean(axis=0), x),
        lambda x: x[:5].mean(axis=0),
    ],
)
def test_other_graphs_are_told(other: Callable[[Any], Any]) -> None:
    expected = outline(lambda x: x.mean(axis=0))
    assert expected.numbers(graph(other, 40), 40) is None
    assert at_size(expected, graph(other, 40), 40) is None
    with pytest.raises(VaryingError):
        numbers_at(expected.template, graph(other, 40), 40)


def test_a_number_that_stands_in_several_places_is_one_input() -> None:
    """As long as it is the same in all of them."""

    def f(x: Any) -> Any:
        n = x.shape[0]
        return x / n, x * 2 / n, wl.full((3,), n), wl.full((4,), n if n < 40 else 40)

    expected = outline(f)
    assert expected.template.count == 2
    assert [number.tolist() for number in expected.numbers(graph(f, 25), 25) or ()] == [25, 25]
    assert at_size(expected, graph(f, 50), 50) is None
