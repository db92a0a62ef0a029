"""Every option of convolutions against PyTorch's numbers, forward and both gradients: see tools/torch_reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reference.test_against_torch import follow, label
from tools.torch_reference import convolutions

CASES = json.loads((Path(__file__).parents[1] / "reference/convolutions.json").read_text(encoding="utf-8"))["cases"]
COMBINED = [case for case in CASES if len(case["settings"]) > 3]


@pytest.mark.book("S-12", "S-13", "7-23", "7-47", "8-16", name=("wl.nn.Conv2d", "wl.nn.ConvTranspose2d"))
@pytest.mark.parametrize("case", CASES, ids=label)
def test_options(case):
    follow(case, compiled=False)


@pytest.mark.parametrize("case", COMBINED, ids=label)
def test_compiled(case):
    follow(case, compiled=True)


def test_the_file_belongs_to_the_table():
    keys = ("name", "args", "settings")
    assert [{key: case[key] for key in keys} for case in CASES] == [case.heading() for case in convolutions.CASES]
