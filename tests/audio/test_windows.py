"""Window functions against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import wonderland as wl
from wonderland.audio import windows
from wonderland.errors import DTypeError, InputError


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("n", [1, 2, 7, 16])
@pytest.mark.parametrize("name", windows.NAMES)
def test_windows_are_those_of_scipy(name, n, periodic):
    theirs = scipy.signal.get_window(("kaiser", 12.0) if name == "kaiser" else name, n, fftbins=periodic)
    ours = wl.audio.get_window(name, n, periodic, dtype=wl.float64)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-12, atol=1e-15)


def test_the_functions_have_the_names_of_pytorch():
    for name in ("hann", "hamming", "blackman", "bartlett"):
        function = getattr(wl.audio, f"{name}_window")
        np.testing.assert_array_equal(np.asarray(function(9)), np.asarray(wl.audio.get_window(name, 9)))
        assert function(9).dtype == wl.float32
        assert function(9, dtype=wl.float64).dtype == wl.float64
    np.testing.assert_allclose(
        np.asarray(wl.audio.kaiser_window(9, beta=5.0, dtype=wl.float64)),
        scipy.signal.get_window(("kaiser", 5.0), 9),
        rtol=1e-12,
    )


def test_bad_windows_are_refused():
    with pytest.raises(InputError, match="there is no window 'hanning2'"):
        wl.audio.get_window("hanning2", 8)
    with pytest.raises(InputError, match="n=0 is too small"):
        wl.audio.hann_window(0)
    with pytest.raises(DTypeError, match="int64"):
        wl.audio.hann_window(4, dtype=wl.int64)
