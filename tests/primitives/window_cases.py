"""Cases of convolution, pooling and their transposes, for cases.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import wonderland.nn.functional  # noqa: F401 - declares these primitives
from tests.primitives.makers import Case, Maker, complexes, distinct, fixed, integers, real


def settings(*axes: tuple[int, tuple[int, int], int], groups: int = 1) -> dict[str, Any]:
    """Stride, padding and dilation for each spatial axis."""
    stride, padding, dilation = zip(*axes, strict=True)
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


plain = (1, (0, 0), 1)
# label, (batch, spatial, in), (kernel, in / groups, out), settings, spatial shape of the output
CONVOLUTIONS: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any], tuple[int, ...]]] = [
    ("one axis", (2, 6, 2), (3, 2, 3), settings(plain), (4,)),
    ("two axes", (2, 5, 4, 2), (3, 2, 2, 3), settings(plain, (1, (1, 0), 1)), (3, 4)),
    ("three axes", (1, 3, 2, 3, 2), (2, 1, 2, 2, 1), settings(plain, plain, (2, (1, 1), 1)), (2, 2, 2)),
    ("stride with a rest", (1, 6, 5, 1), (2, 3, 1, 2), settings((3, (0, 0), 1), (2, (1, 1), 1)), (2, 3)),
    ("dilation", (2, 7, 2), (3, 2, 2), settings((2, (2, 1), 2)), (3,)),
    ("cropped", (2, 7, 2), (2, 2, 3), settings((1, (-1, -2), 1)), (3,)),
    ("cropped and padded", (1, 5, 4, 1), (2, 2, 1, 2), settings((2, (-2, 3), 1), (1, (1, -1), 1)), (3, 3)),
    ("groups", (2, 5, 4), (3, 2, 6), settings((1, (1, 1), 1), groups=2), (5,)),
    ("depthwise", (2, 4, 3, 3), (2, 2, 1, 6), settings((1, (1, 1), 1), plain, groups=3), (5, 2)),
    ("no examples", (0, 4, 2), (3, 2, 2), settings(plain), (2,)),
    ("no channels", (2, 4, 0), (3, 0, 2), settings(plain), (2,)),
]


def convolutions(form: Any) -> list[Case]:
    """A case for each of the above: `form` chooses makers and parameters from shapes of x, w and y."""
    cases = []
    for label, x, w, params, places in CONVOLUTIONS:
        shapes = {"x": x, "w": w, "y": (x[0], *places, w[-1])}
        first, second, further = form(x, w)
        cases.append(Case(label, (real(*shapes[first]), real(*shapes[second])), {**params, **further}))
        if label in ("one axis", "groups"):
            for kind, maker in (("complex", complexes), ("integer", integers)):
                args = (maker(*shapes[first]), maker(*shapes[second]))
                cases.append(Case(f"{label}, {kind}", args, {**params, **further}))
    return cases


def windows(*axes: tuple[int, int, tuple[int, int], int]) -> dict[str, Any]:
    """Window, stride, padding and dilation for each spatial axis."""
    window, stride, padding, dilation = zip(*axes, strict=True)
    return {"window": window, "stride": stride, "padding": padding, "dilation": dilation}


# label, (batch, spatial, channels), windows, spatial shape of the output
POOLINGS: list[tuple[str, tuple[int, ...], dict[str, Any], tuple[int, ...]]] = [
    ("one axis", (2, 6, 3), windows((2, 2, (0, 0), 1)), (3,)),
    ("overlapping", (2, 5, 4, 2), windows((3, 1, (1, 1), 1), (2, 1, (0, 0), 1)), (5, 3)),
    ("three axes", (1, 3, 4, 3, 2), windows((2, 1, (0, 0), 1), (2, 2, (0, 0), 1), (1, 2, (0, 0), 1)), (2, 2, 2)),
    ("dilation", (2, 7, 2), windows((3, 2, (2, 1), 2)), (3,)),
    ("cropped", (2, 8, 2), windows((2, 2, (-1, -2), 1)), (2,)),
    ("many places", (1, 18, 17, 1), windows((17, 1, (0, 0), 1), (17, 1, (0, 0), 1)), (2, 1)),
    ("no examples", (0, 4, 2), windows((2, 2, (0, 0), 1)), (2,)),
    ("no channels", (2, 4, 0), windows((2, 2, (0, 0), 1)), (2,)),
]


def poolings(maker: Any, *, integer: bool = True) -> list[Case]:
    cases = [Case(label, (maker(*shape),), params) for label, shape, params, _ in POOLINGS]
    return cases + ([Case("integer", (integers(2, 6, 2),), windows((3, 2, (1, 1), 1)))] if integer else [])


def positions(*shape: int, window: tuple[int, ...]) -> Maker:
    """Positions in a window, some of which lie in the padding."""
    count = int(np.prod(window))
    return integers(*shape, low=0, high=count, dtype=np.uint8 if count <= 256 else np.int32)


def chosen(of_window: bool) -> list[Case]:
    cases = []
    for label, shape, params, places in POOLINGS:
        pooled = (shape[0], *places, shape[-1])
        index = positions(*pooled, window=params["window"])
        if of_window:
            cases.append(Case(label, (real(*pooled), index), {"spatial": shape[1:-1], **params}))
        else:
            cases.append(Case(label, (real(*shape), index), params))
    return cases


CASES: dict[str, list[Case]] = {
    "convolution": convolutions(lambda x, w: ("x", "w", {})),
    "convolution_input": convolutions(lambda x, w: ("y", "w", {"spatial": x[1:-1]})),
    "convolution_weight": convolutions(lambda x, w: ("x", "y", {"kernel": w[:-2]})),
    "window_argmax": [
        *poolings(distinct),
        Case("ties", (fixed([[[1.0], [2.0], [2.0], [0.0]]]),), windows((3, 1, (1, 1), 1)), wrt=()),
        Case("bool", (fixed([[[False], [True], [True], [False]]]),), windows((2, 2, (0, 0), 1))),
    ],
    "window_pick": chosen(of_window=False),
    "window_put": chosen(of_window=True),
    "window_sum": poolings(real),
    "window_spread": [
        Case(label, (real(shape[0], *places, shape[-1]),), {"spatial": shape[1:-1], **params})
        for label, shape, params, places in POOLINGS
    ],
}
