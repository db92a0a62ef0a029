"""What compiled code promises to the last bit: the same result on any number of threads, in any process, and for a row
wherever it stands in its batch. (Without `jit`, results are what NumPy gives.)"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import native, on_threads
from wonderland import nn

ROWS = [3, 17, 130]
DTYPES = ["float32", "float64", "float16", "bfloat16"]


def model(width: int, dtype: str) -> Any:
    """Products of both orientations, normalisation, a softmax and a reduction to one number, row by row."""
    rng = np.random.default_rng(width)
    w, v, u = (wl.astype(wl.asarray(rng.normal(size=shape)), dtype) for shape in [(width, 50), (37, 50), (width, 1)])

    def f(x: Any) -> list[Any]:
        hidden = wl.tanh(x @ w)
        return [hidden, wl.softmax(hidden @ wl.transpose(v)), nn.functional.layer_norm(x, width), (x @ u)[:, 0]]

    return f


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [5, 64, 1200])
@pytest.mark.parametrize("rows", ROWS)
def test_a_row_has_the_same_bits_wherever_it_stands(rows: int, width: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = np.asarray(wl.astype(wl.asarray(rng.normal(size=(rows, width))), dtype))
    order = rng.permutation(rows)
    program, arrays = native(model(width, dtype), x)
    first = [np.copy(out) for out in program(arrays)]
    second = program([*arrays[:-1], np.ascontiguousarray(x[order])])
    for one, other in zip(first, second, strict=True):
        assert one[order].tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_number_of_threads_changes_no_bit(dtype: str) -> None:
    x = wl.astype(wl.asarray(np.random.default_rng(0).normal(size=(260, 64))), dtype)
    f = model(64, dtype)
    program, arrays = native(wl.value_and_grad(lambda x: sum(wl.sum(wl.square(out)) for out in f(x))), x)
    with wl.debug.filled_memory():
        on_threads(program, arrays, (1, 2, 3, 7))


SCRIPT = """
import hashlib, numpy as np, wonderland as wl
x = wl.asarray(np.random.default_rng(0).normal(size=(130, 64)).astype(np.float32))
step = wl.jit(wl.grad(lambda x: (wl.softmax(x @ x.T) @ wl.tanh(x)).sum()))
print(hashlib.sha256(np.asarray(step(x)).tobytes()).hexdigest())
"""


def test_another_process_gives_the_same_bits() -> None:
    found = {
        subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout.strip()
        for _ in range(2)
    }
    x = wl.asarray(np.random.default_rng(0).normal(size=(130, 64)).astype(np.float32))
    here = np.asarray(wl.jit(wl.grad(lambda x: (wl.softmax(x @ x.T) @ wl.tanh(x)).sum()))(x))
    assert found == {hashlib.sha256(here.tobytes()).hexdigest()}
