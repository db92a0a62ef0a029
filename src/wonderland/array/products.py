"""Products of vectors, matrices and tensors. Book, sections 2.1.1 to 2.1.3."""

from __future__ import annotations

import math
from typing import Any

from ..errors import ShapeError
from ..primitives.contraction import matmul as matmul_primitive
from ..tensor import Tensor
from .conversion import promote
from .elementwise import conj, multiply
from .manipulation import broadcast_arrays, moveaxis, reshape
from .reductions import sum


def matmul(x1: Any, x2: Any, /) -> Tensor:
    r"""The matrix product \(Z_{ij} = \sum_k X_{ik} Y_{kj}\), batched on leading axes; vectors are rows or columns as needed.

    >>> import wonderland as wl
    >>> (wl.ones((4, 5, 2)) @ wl.ones((4, 2, 3))).shape
    (4, 5, 3)
    """
    if not (isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype is x2.dtype):
        x1, x2 = promote("matmul", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise ShapeError(f"matmul: shapes {x1.shape} and {x2.shape}: a scalar is not a matrix.", "x * y")
    if x1.ndim > 1 and x2.ndim > 1:
        return matmul_primitive(x1, x2)  # type: ignore[no-any-return]
    left, right = x1, x2
    if x1.ndim == 1:
        left = reshape(x1, (1, x1.shape[0]))
    if x2.ndim == 1:
        right = reshape(x2, (x2.shape[0], 1))
    if left.shape[-1] != right.shape[-2]:
        raise ShapeError(
            f"matmul: shapes {x1.shape} and {x2.shape} do not fit: the inner sizes {left.shape[-1]} and {right.shape[-2]} differ.",
            "shapes (..., n, k) and (..., k, m)",
        )
    out = matmul_primitive(left, right)
    shape = out.shape
    if x1.ndim == 1:
        shape = (*shape[:-2], shape[-1])
    if x2.ndim == 1:
        shape = shape[:-1]
    return reshape(out, shape)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    r"""\(\sum_i \overline{x_i}\, y_i\) along an axis."""
    x1, x2 = promote("vecdot", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0 or x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot: shapes {x1.shape} and {x2.shape} differ along axis {axis}.", "vectors of one length")
    return sum(multiply(conj(moveaxis(x1, axis, -1)), moveaxis(x2, axis, -1)), axis=-1, dtype=x1.dtype)


def dot(x1: Any, x2: Any, /) -> Tensor:
    r"""The inner product \(\langle x, y\rangle = \sum_i x_i y_i\) of two vectors; of tensors, the last axis of x1 with the
    second-to-last of x2, as in NumPy. Book, D.2.2.

    >>> import wonderland as wl
    >>> print(wl.dot(wl.tensor([0.1, 0.0, -0.3]), wl.tensor([-4.0, 0.05, 0.1])))
    tensor(-0.43)
    """
    x1, x2 = promote("dot", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return multiply(x1, x2)
    if x2.ndim == 1 or x1.ndim <= 2 and x2.ndim == 2:
        return matmul(x1, x2)
    return tensordot(x1, x2, axes=((-1,), (-2,)))


def inner(x1: Any, x2: Any, /) -> Tensor:
    """The inner product over the last axes."""
    x1, x2 = promote("inner", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return multiply(x1, x2)
    return tensordot(x1, x2, axes=((-1,), (-1,)))


def outer(x1: Any, x2: Any, /) -> Tensor:
    r"""\(Z_{ij} = x_i y_j\)."""
    x1, x2 = promote("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"outer: shapes {x1.shape} and {x2.shape}.", "two vectors; x.ravel() for others")
    return matmul(reshape(x1, (x1.shape[0], 1)), reshape(x2, (1, x2.shape[0])))


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over pairs of axes: the last `axes` of x1 with the first of x2, or two lists of axes."""
    x1, x2 = promote("tensordot", x1, x2)
    if isinstance(axes, int):
        left, right = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        left, right = ([a] if isinstance(a, int) else list(a) for a in axes)
        left, right = [a % x1.ndim for a in left], [a % x2.ndim for a in right]
    if [x1.shape[a] for a in left] != [x2.shape[a] for a in right]:
        raise ShapeError(
            f"tensordot: shapes {x1.shape} over axes {left} and {x2.shape} over axes {right} differ.", "pairs of equal size"
        )
    keep1 = [i for i in range(x1.ndim) if i not in left]
    keep2 = [i for i in range(x2.ndim) if i not in right]
    size = math.prod(x1.shape[a] for a in left)
    a = reshape(x1.transpose(tuple(keep1 + left)), (math.prod(x1.shape[i] for i in keep1), size))
    b = reshape(x2.transpose(tuple(right + keep2)), (size, math.prod(x2.shape[i] for i in keep2)))
    return reshape(matmul(a, b), tuple(x1.shape[i] for i in keep1) + tuple(x2.shape[i] for i in keep2))


def kron(x1: Any, x2: Any, /) -> Tensor:
    """The Kronecker product of two matrices."""
    x1, x2 = promote("kron", x1, x2)
    (n, m), (k, l) = x1.shape, x2.shape
    return reshape(reshape(x1, (n, 1, m, 1)) * reshape(x2, (1, k, 1, l)), (n * k, m * l))


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors with three components."""
    x1, x2 = promote("cross", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0 or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ShapeError(f"cross: shapes {x1.shape} and {x2.shape} along axis {axis}.", "vectors of size 3")
    a, b = broadcast_arrays(x1, x2)
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    order, next_ = [1, 2, 0], [2, 0, 1]
    return moveaxis(a[..., order] * b[..., next_] - a[..., next_] * b[..., order], -1, axis)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of the diagonal of the last two axes."""
    from .indexing import diagonal

    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


# --- einsum


def einsum(subscripts: str, *operands: Any) -> Tensor:
    r"""Sums of products in Einstein's notation: an index on the right of the operands but not of the arrow is summed.

    >>> import wonderland as wl
    >>> A, B = wl.ones((4, 5, 2)), wl.ones((4, 2, 3))
    >>> wl.einsum("ijz,izk->ijk", A, B).shape
    (4, 5, 3)

    Any number of operands, repeated indices within an operand, and "..." for batch axes. Operands are contracted two at a
    time, the pair that costs least first. Book, section 2.1.4 (E.2.11 to E.2.14, Boxes C.2.4 and C.2.5).
    """
    xs = promote("einsum", *operands)
    inputs, output = _parse(subscripts, [x.shape for x in xs])
    sizes: dict[str, int] = {}
    for labels, x in zip(inputs, xs, strict=True):
        for label, n in zip(labels, x.shape, strict=True):
            if sizes.setdefault(label, n) != n:
                if 1 not in (n, sizes[label]):
                    raise ShapeError(
                        f"einsum: index {label!r} of {subscripts!r} has sizes {sizes[label]} and {n}; shapes {[x.shape for x in xs]}.",
                        "one size per index",
                    )
                sizes[label] = max(n, sizes[label])
    terms = [_reduce_alone(labels, x, inputs[:i] + inputs[i + 1 :], output, sizes) for i, (labels, x) in enumerate(zip(inputs, xs, strict=True))]
    while len(terms) > 1:
        i, j = _cheapest(terms, output, sizes)
        second = terms.pop(j)
        first = terms.pop(i)
        needed = set(output).union(*[labels for labels, _ in terms])
        terms.append(_contract(first, second, needed))
    labels, x = terms[0]
    extra = tuple(i for i, label in enumerate(labels) if label not in output)
    if extra:
        x = sum(x, axis=extra, dtype=x.dtype)
        labels = [label for label in labels if label in output]
    x = x.transpose(tuple(labels.index(label) for label in output)) if output else x
    return x


def _parse(subscripts: str, shapes: list[tuple[int, ...]]) -> tuple[list[list[str]], list[str]]:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise ShapeError(f"einsum: {subscripts!r} names {len(parts)} operands, received {len(shapes)}.", "one term per operand")
    allowed = left.replace(",", "").replace("...", "")
    if not all(c.isalpha() for c in allowed + right.replace("...", "")):
        raise ShapeError(f"einsum: {subscripts!r} has a character that is not a letter.", "letters, commas, '...' and '->'")
    batch = 0
    inputs: list[list[str]] = []
    for part, shape in zip(parts, shapes, strict=True):
        named = len(part.replace("...", ""))
        rest = len(shape) - named
        if rest < 0 or (rest and "..." not in part):
            raise ShapeError(f"einsum: the term {part!r} of {subscripts!r} does not fit a tensor of shape {shape}.", "one letter per axis")
        batch = max(batch, rest)
        before, _, after = part.partition("...")
        inputs.append([*before, *[f"#{i}" for i in range(rest - 1, -1, -1)], *after] if "..." in part else list(part))
    dots = [f"#{i}" for i in range(batch - 1, -1, -1)]
    if arrow:
        before, has_dots, after = right.partition("...")
        output = [*before, *(dots if has_dots else []), *after]
    else:
        counts = [c for part in inputs for c in part]
        output = dots + sorted({c for c in counts if counts.count(c) == 1 and not c.startswith("#")})
    known = {label for labels in inputs for label in labels}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ShapeError(f"einsum: the output of {subscripts!r} repeats or invents an index.", "each output index once, from the inputs")
    return inputs, output


def _reduce_alone(labels: list[str], x: Any, others: list[list[str]], output: list[str], sizes: dict[str, int]) -> tuple[list[str], Any]:
    """Take diagonals of repeated indices and sum those that occur nowhere else."""
    from .indexing import diagonal

    labels = list(labels)
    for label in sorted(set(labels)):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            x = diagonal(moveaxis(x, (i, j), (-2, -1)))
            labels = [c for k, c in enumerate(labels) if k not in (i, j)] + [label]
    needed = set(output).union(*others) if others else set(output)
    alone = tuple(i for i, label in enumerate(labels) if label not in needed)
    if alone:
        x = sum(x, axis=alone, dtype=x.dtype)
        labels = [label for label in labels if label in needed]
    # an axis of size 1 that broadcasts against a larger one is dropped: the other operand carries the index
    ones = tuple(i for i, label in enumerate(labels) if x.shape[i] == 1 and sizes[label] != 1 and any(label in o for o in others))
    if ones:
        x = reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in ones))
        labels = [label for i, label in enumerate(labels) if i not in ones]
    return labels, x


def _cheapest(terms: list[tuple[list[str], Any]], output: list[str], sizes: dict[str, int]) -> tuple[int, int]:
    """The pair whose contraction frees the most memory, then costs the fewest multiplications: a greedy order."""
    best, choice = None, (0, 1)
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            a, b = set(terms[i][0]), set(terms[j][0])
            needed = set(output).union(*[set(t[0]) for k, t in enumerate(terms) if k not in (i, j)])
            cost = math.prod(sizes[c] for c in a | b)
            made = math.prod(sizes[c] for c in (a | b) & needed)
            freed = math.prod(sizes[c] for c in a) + math.prod(sizes[c] for c in b)
            key = (made - freed, cost)
            if best is None or key < best:
                best, choice = key, (i, j)
    return choice


def _contract(first: tuple[list[str], Any], second: tuple[list[str], Any], needed: set[str]) -> tuple[list[str], Any]:
    """One batched matrix product: shared and needed indices are the batch, shared and not needed ones are summed."""
    (la, a), (lb, b) = first, second
    batch = [c for c in la if c in lb and c in needed]
    summed = [c for c in la if c in lb and c not in needed]
    only_a = [c for c in la if c not in lb]
    only_b = [c for c in lb if c not in la]
    a = a.transpose(tuple(la.index(c) for c in batch + only_a + summed)) if la else a
    b = b.transpose(tuple(lb.index(c) for c in batch + summed + only_b)) if lb else b
    nb, na, ns = len(batch), len(only_a), len(summed)
    lead = a.shape[:nb]
    size_a, size_b = a.shape[nb : nb + na], b.shape[nb + ns :]
    if not summed:
        # an outer or elementwise product needs no matrix product
        out = reshape(a, (*lead, *size_a, *(1,) * len(size_b))) * reshape(b, (*lead, *(1,) * len(size_a), *size_b))
        return batch + only_a + only_b, out
    n, m, k = math.prod(size_a), math.prod(size_b), math.prod(a.shape[nb + na :])
    out = matmul(reshape(a, (*lead, n, k)), reshape(b, (*lead, k, m)))
    return batch + only_a + only_b, reshape(out, (*lead, *size_a, *size_b))


__all__ = ["cross", "dot", "einsum", "inner", "kron", "matmul", "outer", "tensordot", "trace", "vecdot"]
