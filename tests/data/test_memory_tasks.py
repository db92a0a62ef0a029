"""Tasks that need a memory: what they ask for, and that the parts of a sequence are where they should be."""

from __future__ import annotations

import numpy as np
import pytest

from tests.test_examples import example
from wonderland import data
from wonderland.errors import InputError

MAKERS = [data.make_delay_task, data.make_selective_copy_task]
each = pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)


@pytest.mark.book("13.73", name=("wl.data.make_delay_task", "wl.data.make_selective_copy_task"))
@each
def test_the_symbols_are_asked_for_in_their_order(make):
    x, y = make(300, 20, length=3, symbols=5, seed=1)
    assert x.shape == y.shape == (300, 23)
    assert x.dtype == y.dtype == np.int64
    assert (x[:, 20:] == 1).all()
    assert (y[:, :20] == -100).all()
    for row, target in zip(x, y, strict=True):
        assert row[row > 1].tolist() == target[20:].tolist()
        assert np.count_nonzero(row[:20] == 0) == 17
    assert set(np.unique(x)) == set(range(7))


def test_where_the_symbols_are():
    x, y = data.make_delay_task(100, 20, length=3)
    np.testing.assert_array_equal(y[:, 20:], x[:, :3])  # y_t = x_{t - lag}
    x, _ = data.make_selective_copy_task(2000, 20, length=3)
    share = (x[:, :20] > 1).mean(0)
    np.testing.assert_allclose(share, 3 / 20, atol=0.04)  # at every place alike


@each
def test_seeds_and_bad_input(make):
    np.testing.assert_array_equal(make(5, 9, seed=3)[0], make(5, 9, seed=3)[0])
    assert (make(5, 9, seed=3)[0] != make(5, 9, seed=4)[0]).any()
    for settings in ({"lag": 2, "length": 3}, {"symbols": 1}, {"lag": 0}, {"length": 0}):
        with pytest.raises(InputError):
            make(5, **settings)


@pytest.mark.book("13.73", name="examples/delay_tasks.py")
def test_gates_carry_a_symbol_over_a_lag_where_an_elman_layer_does_not(capsys):
    """A small version of the example, whose table is for a lag of 200."""
    found = example("delay_tasks").main(["elman", "gru"], lag=30, steps=120, tasks=("delay",))
    assert found["delay", "gru"] > 0.95
    assert found["delay", "elman"] < 0.4
    assert "at chance" in capsys.readouterr().out
