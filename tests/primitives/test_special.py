"""The special functions that NumPy does not have, against the C library and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special as scipy_special

from wonderland.primitives import special

# the C library keeps all digits of erfc for large arguments, which SciPy does not
ORACLES = {
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "erfinv": scipy_special.erfinv,
}
GRIDS = {
    "erf": np.concatenate([np.linspace(-7, 7, 20001), [1e-300, -1e-20, 1e-9, 30.0, -30.0]]),
    "erfc": np.concatenate([np.linspace(-7, 26, 30001), [1e-300, -1e-20, -30.0]]),
    "erfinv": np.concatenate([np.linspace(-0.999999, 0.999999, 20001), [1e-300, 1e-12, 1 - 1e-15]]),
}


@pytest.mark.parametrize("name", GRIDS)
def test_precision_on_a_grid(name: str) -> None:
    x = GRIDS[name]
    got, want = getattr(special, name)(x), ORACLES[name](x)
    nonzero = want != 0
    error = np.abs(got - want)[nonzero] / np.abs(want)[nonzero]
    assert error.max() < 2e-14, f"{name} at {x[nonzero][error.argmax()]!r}"
    assert not got[~nonzero].any()


def test_ends_of_the_domain() -> None:
    infinite = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(special.erf(infinite), [1, -1, np.nan])
    np.testing.assert_array_equal(special.erfc(infinite), [0, 2, np.nan])
    np.testing.assert_array_equal(special.erfinv(np.array([1.0, -1.0, 1.5, np.nan])), [np.inf, -np.inf, np.nan, np.nan])
    assert np.signbit(special.erf(np.array(-0.0)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_types_are_rounded_once(dtype: type) -> None:
    x = np.linspace(-3, 3, 101).astype(dtype)
    want = ORACLES["erf"](x.astype(np.float64)).astype(dtype)
    np.testing.assert_array_equal(special.erf(x), want)


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(TypeError):
        special.erf(np.array(1j))
