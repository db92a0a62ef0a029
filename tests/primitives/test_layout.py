"""Views of memory, said as operations on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.core.views import lie, memory, part
from wonderland.primitives.layout import part_of


def seen(a):
    """What a part is of its memory; None if it has none."""
    found = part(a)
    return None if found is None else part_of(wl.asarray(memory(a)), found).numpy()


@st.composite
def views(draw):
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    a = np.arange(np.prod(shape)).reshape(shape)
    for _ in range(draw(st.integers(1, 3))):
        match draw(st.sampled_from(["transpose", "slice", "new axis", "split"])):
            case "transpose":
                a = a.transpose(draw(st.permutations(range(a.ndim))))
            case "slice":
                starts = [draw(st.integers(0, n - 1)) for n in a.shape]
                ends = [draw(st.integers(s + 1, n)) for s, n in zip(starts, a.shape, strict=True)]
                a = a[tuple(slice(s, e, draw(st.integers(1, 3))) for s, e in zip(starts, ends, strict=True))]
            case "new axis":
                a = np.expand_dims(a, draw(st.integers(0, a.ndim)))
            case "split" if a.shape[-1] % 2 == 0:
                a = a.reshape(*a.shape[:-1], 2, a.shape[-1] // 2)  # a view of a view, or a copy
    return a


@given(views())
def test_a_part_has_the_numbers_of_the_view(a):
    found = seen(a)
    if found is not None:
        np.testing.assert_array_equal(found, a)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x.transpose(1, 0, 2),
        lambda x: x[:, 2:4],
        lambda x: x[..., 1],
        lambda x: x[:, :, ::2],
        lambda x: x.reshape(4, 6, 2, 4)[:, :, 1].transpose(1, 0, 2),
        lambda x: np.exp(x.transpose(2, 0, 1)),  # memory of its own, in the order of its argument
    ],
)
def test_usual_views_are_parts(view):
    a = view(np.arange(4.0 * 6 * 8).reshape(4, 6, 8))
    assert not a.flags.c_contiguous
    np.testing.assert_array_equal(seen(a), a)


def test_what_stands_for_itself():
    x = np.arange(60.0).reshape(6, 10)
    assert part(x) is None  # in order
    assert part(x[::-1]) is None  # backwards
    assert part(np.broadcast_to(x[0], (6, 10))) is None  # repeated
    assert part(x[:5:2, ::3]) is None  # steps that do not divide
    assert part((x + 1j * x).real) is None  # of another type
    assert part(np.zeros((50, 50))[:4, :4]) is None  # little of much


def test_views_lie_alike_if_they_are_the_same_part():
    x, y = np.zeros((6, 12)), np.ones((6, 12))
    assert lie(x[:, :4]) == lie(y[:, :4]) != lie(x[:, 4:8])
    assert lie(x[:, :4]) != lie(np.zeros((7, 12))[:6, :4])
    assert lie(x) == lie(y) != lie(x.T)
