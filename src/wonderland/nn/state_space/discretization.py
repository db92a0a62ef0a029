r"""From time to steps: \(\dot s = A s + B x\) becomes \(s_i = \bar A s_{i-1} + \bar B x_i\). Book, 13.4.3."""

from __future__ import annotations

from ... import arrays, linalg
from ...arrays.conversion import promote
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike

__all__ = ["discretize", "discretize_matrix"]

METHODS = ("zoh", "bilinear", "euler", "mamba")


def discretize(delta: ArrayLike, A: ArrayLike, B: ArrayLike = 1.0, method: str = "zoh") -> tuple[Tensor, Tensor]:
    r"""\(\bar A, \bar B\) for a diagonal A and steps \(\Delta\), elementwise. Book, section 13.4.3 (footnote 5).

    >>> import wonderland as wl
    >>> A, B = wl.nn.discretize(0.1, wl.tensor([-1.0, -2.0]))
    >>> A
    tensor([0.9048374, 0.8187308])

    - "zoh", an input that holds between steps: \(\bar A = e^{\Delta A}\), \(\bar B = A^{-1}(e^{\Delta A} - 1) B\);
    - "bilinear": \(\bar A = (1 + \Delta A/2)/(1 - \Delta A/2)\), \(\bar B = \Delta B/(1 - \Delta A/2)\);
    - "euler": \(\bar A = 1 + \Delta A\), \(\bar B = \Delta B\), which is stable for small steps only;
    - "mamba", which has the first \(\bar A\) and the last \(\bar B\).

    For \(\operatorname{Re} A < 0\) and \(\Delta > 0\) all but "euler" have \(\lvert\bar A\rvert < 1\). The step may
    depend on the input: the arguments broadcast against each other, `B` by default 1.
    """
    check_method("discretize", method)
    delta, A, B = _operand(delta), _operand(A), _operand(B)
    x = delta * A
    if method == "bilinear":
        half = 1 / (1 - x / 2)
        return (1 + x / 2) * half, delta * half * B
    if method == "euler":
        return 1 + x, delta * B
    if method == "mamba":
        return arrays.exp(x), delta * B
    still = A == 0
    # the limit of (exp(x) - 1)/A where A is 0; the divisor is changed there, or its derivative would be NaN
    factor = arrays.where(still, delta, arrays.expm1(x) / arrays.where(still, 1.0, A))
    return arrays.exp(x), factor * B


def discretize_matrix(delta: ArrayLike, A: ArrayLike, B: ArrayLike, method: str = "zoh") -> tuple[Tensor, Tensor]:
    r"""\(\bar A, \bar B\) for any matrices A (..., e, e) and B (..., e, c) and a step \(\Delta\); see `discretize`.

    >>> import wonderland as wl
    >>> A, B = wl.nn.discretize_matrix(0.5, wl.tensor([[0.0, 1.0], [0.0, 0.0]]), wl.tensor([[0.0], [1.0]]))
    >>> A.tolist(), B.tolist()  # position and speed under a force
    ([[1.0, 0.5], [0.0, 1.0]], [[0.125], [0.5]])

    Zero-order hold is one exponential, \(\exp\left(\Delta \begin{bmatrix} A & B \\ 0 & 0 \end{bmatrix}\right)\), which
    needs no inverse of A.
    """
    name, delta = "discretize_matrix", _operand(delta)
    check_method(name, method)
    A, B = promote(name, arrays.asarray(A), arrays.asarray(B))
    e = A.shape[-1] if A.ndim else 0
    if A.ndim < 2 or B.ndim < 2 or A.shape[-2:] != (e, e) or B.shape[-2] != e:
        raise ShapeError(f"{name}: matrices {A.shape} and {B.shape}.", "(..., e, e) and (..., e, c)")
    x, held = delta * A, delta * B
    one = arrays.eye(e, dtype=A.dtype)
    if method == "bilinear":
        return linalg.solve(one - x / 2, one + x / 2), linalg.solve(one - x / 2, held)
    if method == "euler":
        return one + x, held
    if method == "mamba":
        return linalg.matrix_exp(x), held
    below = arrays.zeros((*x.shape[:-2], held.shape[-1], e + held.shape[-1]), dtype=x.dtype)
    grown = linalg.matrix_exp(arrays.concat([arrays.concat([x, held], axis=-1), below], axis=-2))
    return grown[..., :e, :e], grown[..., :e, e:]


def _operand(value: ArrayLike) -> Tensor:
    """A tensor, or a Python number, which takes the type of the others."""
    return value if isinstance(value, int | float | complex) else arrays.asarray(value)  # type: ignore[return-value]


def check_method(name: str, method: str) -> None:
    if method not in METHODS:
        raise InputError(f"{name}: method={method!r}.", "one of " + ", ".join(map(repr, METHODS)))
