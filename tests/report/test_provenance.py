"""Settings and versions: all of them, as text."""

from __future__ import annotations

import platform
from datetime import datetime

import llvmlite
import numpy as np

import wonderland as wl
from tests.report.reading import Reader
from wonderland.report.provenance import LONGEST, flat, settings_section, versions


def test_settings_keep_their_order_and_their_depth():
    settings = {"b": 1, "a": {"y": None, "x": {"z": [1, 2]}, "empty": {}}, 3: True, "t": "text"}
    expected = {"b": "1", "a.y": "None", "a.x.z": "[1, 2]", "a.empty": "{}", "3": "True", "t": "text"}
    assert list(flat(settings).items()) == list(expected.items())
    rows = Reader(settings_section(settings).html).table("setting", "value")
    assert rows == [list(pair) for pair in expected.items()]


def test_no_settings_no_section_and_long_ones_are_cut():
    assert settings_section({}) is None
    assert len(flat({"all": list(range(1000))})["all"]) == LONGEST


def test_versions_are_those_of_this_process():
    found = versions()
    assert found["wonderland"] == wl.__version__
    assert found["numpy"] == np.__version__
    assert found["llvmlite"] == llvmlite.__version__
    assert platform.python_version() in found["python"]
    assert found["threads"] == str(wl.get_threads())
    assert abs((datetime.now().astimezone() - datetime.fromisoformat(found["date"])).total_seconds()) < 60
