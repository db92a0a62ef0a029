"""Every option of convolutions and of their transposes, over one, two and three spatial axes.

`layers` has some with settings that differ from axis to axis.
"""

from __future__ import annotations

from typing import Any

from .cases import Case

SPATIAL = {1: (6,), 2: (5, 4), 3: (4, 3, 3)}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"stride": 2},
    {"padding": 1, "bias": False},
    {"dilation": 2, "padding": 2},
    {"groups": 2},
    {"groups": 4, "padding": 1, "stride": 2},
    {"padding": "same"},
    {"padding": "valid", "stride": 3},
    *[{"padding": 1, "padding_mode": mode, "stride": 2} for mode in ("reflect", "circular", "replicate")],
    {"stride": 2, "padding": 2, "dilation": 2, "groups": 2, "padding_mode": "reflect"},
]
TRANSPOSED: list[dict[str, Any]] = [
    {"stride": 2, "bias": False},
    {"padding": 1},
    {"stride": 2, "padding": 1, "output_padding": 1},
    {"dilation": 2, "padding": 1},
    {"groups": 2},
    {"groups": 4, "stride": 3, "output_padding": 2, "dilation": 2, "padding": 2},
]


def _case(name: str, axes: int, options: dict[str, Any], spatial: tuple[int, ...]) -> Case:
    """Two channels become two, or as many as the groups need."""
    groups = options.get("groups", 1)
    inputs = max(2, groups)
    outputs = 2 * groups if groups > 1 and axes < 3 else inputs
    kernel = 2 if options.get("padding") == "same" else [3, 2, 2][axes - 1 :][0]
    return Case(f"{name}{axes}d", ((1, *spatial, inputs),), (inputs, outputs, kernel), options, channels_first=True)


CASES = [
    *[_case("Conv", axes, options, SPATIAL[axes]) for axes in SPATIAL for options in OPTIONS],
    *[_case("ConvTranspose", axes, options, (2,) * axes) for axes in SPATIAL for options in TRANSPOSED],
    Case("Conv2d", ((2, 3, 3, 3),), (3, 4, 1), channels_first=True),
    Case("Conv1d", ((2, 5, 2),), (2, 3, 1), channels_first=True),
    Case("Conv2d", ((1, 5, 5, 2),), (2, 2, 3), {"padding": "same", "dilation": 2}, channels_first=True),
]
