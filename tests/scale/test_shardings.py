"""The table of what each device holds."""

from __future__ import annotations

import pytest

import wonderland as wl


def test_parts_add_up_to_the_whole() -> None:
    """With everything split over all devices, they hold the tree once; with nothing split, each holds it."""
    model = wl.nn.Linear(64, 32, bias=False)
    grid = wl.mesh(data=2, model=4)
    split, whole = wl.shardings(model, "full", mesh=grid), wl.shardings(model, mesh=grid)
    assert split.bytes * 8 == split.whole_bytes == whole.bytes == 64 * 32 * 4


def test_the_table_has_a_line_for_each_tensor_and_tells_what_is_whole() -> None:
    model = wl.nn.Linear(64, 10)
    with pytest.warns(UserWarning, match="not split"):
        text = str(wl.shardings(model, "tensor", mesh=wl.mesh(model=4)))
    assert "not split: weight: axis 1 of size 10 over model=4" in text
    assert all(any(line.startswith(path) for line in text.splitlines()) for path in model.state_dict())


def test_what_is_nowhere() -> None:
    with pytest.raises(wl.errors.InputError, match="nothing of it is on a mesh"):
        wl.shardings(wl.nn.Linear(2, 2))
    with pytest.raises(wl.errors.InputError, match="rules without a mesh"):
        wl.shardings(wl.nn.Linear(2, 2), "full")
