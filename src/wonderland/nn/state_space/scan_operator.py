r"""The operator whose prefixes are the states of a linear recurrence, and the kernel of one. Book, section 13.3.2."""

from __future__ import annotations

from typing import TypeAlias

from ... import arrays
from ...arrays.conversion import promote
from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.control.associative import associative_scan

__all__ = ["ssm_combine", "ssm_kernel", "ssm_scan"]

Pair: TypeAlias = tuple[Tensor, Tensor]


def ssm_combine(first: Pair, second: Pair) -> Pair:
    r"""\((Z, z) \star (V, v) = (V Z,\; V z + v)\): two steps of \(s \mapsto Z s + z\) as one. Book, section 13.3.2.

    >>> import wonderland as wl
    >>> step = (wl.tensor([[0.5]]), wl.tensor([1.0]))
    >>> wl.nn.ssm_combine(step, step)
    (tensor([[0.25]]), tensor([1.5]))

    Matrices are (..., e, e) and vectors (..., e). It is associative, and it does not commute: the later step stands
    second. A product of matrices takes \(e^3\) steps (the book's n is the size of the state there).
    """
    (Z, z), (V, v) = first, second
    return V @ Z, (V @ z[..., None])[..., 0] + v


def ssm_scan(A: ArrayLike, inputs: ArrayLike) -> Pair:
    r"""All prefixes \((A^i, s_i)\) of the steps \((A, B x_i)\), in logarithmic depth. Book, section 13.3.2.

    >>> import wonderland as wl
    >>> powers, states = wl.nn.ssm_scan([[0.5]], wl.ones((4, 1)))
    >>> powers[:, 0, 0].tolist(), states[:, 0].tolist()
    ([0.5, 0.25, 0.125, 0.0625], [1.0, 1.5, 1.75, 1.875])

    `inputs` are \(B x_i\), (n, e) or (n, rows, e). A is a matrix (e, e), or one for each step, (n, e, e): the operator
    is as associative if it varies. A vector (e,) stands for a diagonal, whose products take e steps and not \(e^3\)
    (for one that varies there is `wl.nn.functional.linear_recurrence`). The second result is the states from \(s_0 =
    0\) on; from another start they are \(s_i + A^i s_0\).
    """
    A, b = promote("ssm_scan", arrays.asarray(A), arrays.asarray(inputs))
    n, e = (b.shape[0], b.shape[-1]) if b.ndim in (2, 3) else (0, 0)
    rows = (1,) * (b.ndim - 2)
    if A.shape == (e,) and b.ndim in (2, 3):
        a = arrays.broadcast_to(A, (n, *rows, e))
        powers, states = associative_scan(lambda p, q: (q[0] * p[0], q[0] * p[1] + q[1]), (a, b))
        return arrays.reshape(powers, (n, e)), states
    if b.ndim not in (2, 3) or A.shape not in ((e, e), (n, e, e)):
        raise ShapeError(f"ssm_scan: A of shape {A.shape} for inputs {b.shape}.", "(e, e) or (n, e, e), and (n, e)")
    a = arrays.broadcast_to(arrays.reshape(A, (-1, *rows, e, e)), (n, *rows, e, e))
    powers, states = associative_scan(ssm_combine, (a, b))
    return arrays.reshape(powers, (n, e, e)), states


def ssm_kernel(A: ArrayLike, B: ArrayLike, n: int) -> Tensor:
    r"""\(K = (A^{n-1} B, \dots, A B, B)\), (n, e, c): the filter that gives the states by a convolution. Book, 13.3.1.

    >>> import wonderland as wl
    >>> wl.nn.ssm_kernel([[0.5]], [[1.0]], 4)[:, 0, 0]
    tensor([0.125, 0.25 , 0.5  , 1.   ])

    The last one meets the present, the first one the token n - 1 steps ago, as `conv1d` with n - 1 zeros in front wants
    it: \(s_i = \sum_{j \le i} A^{i-j} B x_j\). A is (e, e), or (e,) for a diagonal; B is (e, c).
    """
    n = as_int("ssm_kernel", "n", n, 1)
    A, B = promote("ssm_kernel", arrays.asarray(A), arrays.asarray(B))
    e = A.shape[-1] if A.ndim else 0
    if A.shape not in ((e,), (e, e)) or B.ndim != 2 or B.shape[0] != e:
        raise ShapeError(f"ssm_kernel: A of shape {A.shape} and B of shape {B.shape}.", "(e, e) or (e,), and (e, c)")
    powers = powers_of(A, n)
    return arrays.flip(powers @ B if A.ndim == 2 else powers[..., None] * B, axis=0)


def powers_of(A: Tensor, n: int) -> Tensor:
    """A^0 to A^(n-1), (n, ...): of a matrix (e, e), else of the elements; by doubling, in log2(n) products.

    >>> import wonderland as wl
    >>> powers_of(wl.tensor([2.0]), 5)[:, 0].tolist()
    [1.0, 2.0, 4.0, 8.0, 16.0]
    """
    matrix = A.ndim == 2
    one = arrays.eye(A.shape[0], dtype=A.dtype) if matrix else arrays.ones_like(A)
    found, top = one[None], A  # top is the power after the last one found
    while found.shape[0] < n:
        more = found @ top if matrix else found * top
        found = arrays.concat([found, more])
        top = top @ top if matrix else top * top
    return found[:n]
