"""Einstein's notation: `einsum` with any number of operands. Book, section 2.1.4.

The notation is parsed and the order of the products is chosen once per notation and shapes. Two operands at a
time are contracted by one batched matrix product.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from ..core.dtypes import bool_
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from .conversion import promote
from .gathering import diagonal
from .manipulation import moveaxis, reshape, transpose
from .products import matmul
from .reductions import sum

__all__ = ["einsum", "einsum_path"]

Shape = tuple[int, ...]
Labels = tuple[str, ...]
Term = tuple[Labels, Tensor]  # an operand and the indices of its axes
EXHAUSTIVE = 7  # up to this many operands the best order is found by trying all


def einsum(subscripts: str, /, *operands: ArrayLike) -> Tensor:
    r"""Sums of products in Einstein's notation: an index that the output does not have is summed.

    >>> import wonderland as wl
    >>> A, B = wl.ones((4, 5, 2)), wl.ones((4, 2, 3))
    >>> wl.einsum("ijz,izk->ijk", A, B).shape  # A_i B_i for every i
    (4, 5, 3)
    >>> wl.einsum("ijk,ijk->", A, A)  # the generalised dot product
    tensor(40.)

    An index that occurs twice in one operand takes its diagonal, "..." stands for batch axes that broadcast,
    and without "->" the output has the indices that occur once, in alphabetical order. Operands are
    contracted two at a time in an order that costs few multiplications (see `einsum_path`). Book, E.2.11 to
    E.2.14, Boxes C.2.4 and C.2.5.
    """
    xs = _operands(subscripts, operands)
    plan = _plan(subscripts, tuple(x.shape for x in xs))
    terms = [_alone(labels, x, kept) for labels, kept, x in zip(plan.inputs, plan.kept, xs, strict=True)]
    for i, j in plan.path:
        second, first = terms.pop(j), terms.pop(i)
        needed = set(plan.output).union(*[labels for labels, _ in terms])
        terms.append(_contract(first, second, needed))
    ((labels, x),) = terms
    return _arranged(x, labels, plan.output)


class ContractionPath(NamedTuple):
    """The order in which `einsum` contracts its operands."""

    pairs: tuple[tuple[int, int], ...]
    multiply_adds: int


def einsum_path(subscripts: str, /, *operands: ArrayLike) -> ContractionPath:
    """The order of the products that `einsum` uses, and what they cost, without computing them.

    >>> import wonderland as wl
    >>> x, A, B = wl.ones((1, 50)), wl.ones((50, 50)), wl.ones((50, 50))
    >>> wl.einsum_path("ab,bc,cd->ad", x, A, B)
    ContractionPath(pairs=((0, 1), (0, 1)), multiply_adds=5000)

    Each pair is taken out of the list of operands and its product is put at the end. Up to seven operands the
    order with the fewest multiply-adds is found; beyond that, the pair that frees most memory comes first.
    """
    xs = _operands(subscripts, operands)
    plan = _plan(subscripts, tuple(x.shape for x in xs))
    return ContractionPath(plan.path, plan.cost)


def _operands(subscripts: str, operands: tuple[ArrayLike, ...]) -> list[Tensor]:
    if not isinstance(subscripts, str):
        raise InputError(
            f"einsum: the first argument is a {type(subscripts).__name__}.", 'the notation, as in "ij,jk->ik"'
        )
    xs = promote("einsum", *operands)
    if any(x.dtype == bool_ for x in xs):
        raise DTypeError("einsum: bool tensors have no sums of products.", "x.astype(wl.int64)")
    return xs


# --- the plan: from the notation and the shapes alone


class Plan(NamedTuple):
    """What `einsum` does, independent of the numbers."""

    inputs: tuple[Labels, ...]
    kept: tuple[Labels, ...]  # the indices of each operand after its diagonals and its own sums
    output: Labels
    path: tuple[tuple[int, int], ...]
    cost: int


@functools.lru_cache(maxsize=1024)
def _plan(subscripts: str, shapes: tuple[Shape, ...]) -> Plan:
    inputs, output = _parse(subscripts, shapes)
    sizes = _sizes(subscripts, inputs, shapes)
    kept = []
    for i, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        others = set(output).union(*inputs[:i], *inputs[i + 1 :])
        # an axis of size 1 that broadcasts against a larger one is left out: another operand carries the index
        kept.append(
            tuple(c for c in dict.fromkeys(labels) if c in others and (shape[labels.index(c)] != 1 or sizes[c] == 1))
        )
    terms = [frozenset(labels) for labels in kept]
    search = _best_order if len(terms) <= EXHAUSTIVE else _greedy_order
    path, cost = search(terms, frozenset(output), sizes)
    return Plan(inputs, tuple(kept), output, path, cost)


def _parse(subscripts: str, shapes: tuple[Shape, ...]) -> tuple[tuple[Labels, ...], Labels]:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise ShapeError(
            f"einsum: {subscripts!r} names {len(parts)} operands, received {len(shapes)}.",
            "one term per operand",
        )
    if not all(c.isalpha() for part in (*parts, right) for c in part.replace("...", "", 1)):
        raise InputError(
            f"einsum: {subscripts!r} has a character that is not a letter.",
            "letters, commas, one '...' and '->'",
        )
    inputs = tuple(_labels(subscripts, part, shape) for part, shape in zip(parts, shapes, strict=True))
    batch = max((len([c for c in labels if c.startswith("#")]) for labels in inputs), default=0)
    dots = tuple(f"#{i}" for i in range(batch, 0, -1))
    if arrow:
        before, has_dots, after = right.partition("...")
        output = (*before, *(dots if has_dots else ()), *after)
    else:
        named = [c for labels in inputs for c in labels if not c.startswith("#")]
        output = dots + tuple(sorted(c for c in set(named) if named.count(c) == 1))
    if len(set(output)) != len(output) or not set(output) <= {c for labels in inputs for c in labels}:
        raise InputError(
            f"einsum: the output of {subscripts!r} repeats or invents an index.",
            "each output index once, from the inputs",
        )
    return inputs, output


def _labels(subscripts: str, part: str, shape: Shape) -> Labels:
    """One label per axis; those of "..." are numbered from the right, as broadcasting does."""
    before, dots, after = part.partition("...")
    rest = len(shape) - len(before) - len(after)
    if rest < 0 or (rest and not dots):
        raise ShapeError(
            f"einsum: the term {part!r} of {subscripts!r} does not fit a tensor of shape {shape}.",
            "one letter per axis",
        )
    return (*before, *(f"#{i}" for i in range(rest, 0, -1)), *after)


def _sizes(subscripts: str, inputs: tuple[Labels, ...], shapes: tuple[Shape, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        own: dict[str, int] = {}
        for label, n in zip(labels, shape, strict=True):
            known = sizes.setdefault(label, n)
            if own.setdefault(label, n) != n or (known != n and 1 not in (known, n)):
                name = "..." if label.startswith("#") else label
                raise ShapeError(
                    f"einsum: index {name!r} of {subscripts!r} has sizes {known} and {n}; "
                    f"shapes {' and '.join(map(str, shapes))}.",
                    "one size per index",
                )
            sizes[label] = n if known == 1 else known
    return sizes


# --- the order of the products

Path = tuple[tuple[int, int], ...]
Indices = frozenset[str]


def _volume(indices: Indices, sizes: dict[str, int]) -> int:
    return math.prod(sizes[c] for c in indices)


def _best_order(terms: list[Indices], output: Indices, sizes: dict[str, int]) -> tuple[Path, int]:
    """The cheapest tree of products, from those of smaller sets of operands (bits of an integer)."""
    n = len(terms)
    everything = (1 << n) - 1

    def indices(subset: int) -> Indices:
        inside = frozenset().union(*[t for i, t in enumerate(terms) if subset >> i & 1])
        outside = output.union(*[t for i, t in enumerate(terms) if not subset >> i & 1])
        return inside & outside

    left_over = {subset: indices(subset) for subset in range(1, everything + 1)}
    best: dict[int, tuple[int, int]] = {1 << i: (0, 0) for i in range(n)}  # subset: (cost, one half of it)
    for subset in range(1, everything + 1):
        if subset in best:
            continue
        half = (subset - 1) & subset
        candidates = []
        while half:
            other = subset ^ half
            if half > other:
                step = _volume(left_over[half] | left_over[other], sizes)
                candidates.append((best[half][0] + best[other][0] + step, half))
            half = (half - 1) & subset
        best[subset] = min(candidates)
    pairs: list[tuple[int, int]] = []
    order = [1 << i for i in range(n)]  # the list of operands as it shrinks

    def walk(subset: int) -> None:
        half = best[subset][1]
        if not half:
            return
        walk(half)
        walk(subset ^ half)
        i, j = sorted((order.index(half), order.index(subset ^ half)))
        order.pop(j)
        order.pop(i)
        order.append(subset)
        pairs.append((i, j))

    walk(everything)
    return tuple(pairs), best[everything][0]


def _greedy_order(terms: list[Indices], output: Indices, sizes: dict[str, int]) -> tuple[Path, int]:
    """Always the pair whose product frees the most memory, and of those the cheapest."""
    terms, pairs, total = list(terms), [], 0
    while len(terms) > 1:
        choices = []
        for i in range(len(terms)):
            for j in range(i + 1, len(terms)):
                union = terms[i] | terms[j]
                rest = output.union(*[t for k, t in enumerate(terms) if k not in (i, j)])
                freed = _volume(terms[i], sizes) + _volume(terms[j], sizes)
                choices.append((_volume(union & rest, sizes) - freed, _volume(union, sizes), i, j, union & rest))
        _, cost, i, j, made = min(choices, key=lambda choice: choice[:4])
        terms = [t for k, t in enumerate(terms) if k not in (i, j)] + [made]
        pairs.append((i, j))
        total += cost
    return tuple(pairs), total


# --- carrying it out


def _alone(labels: Labels, x: Tensor, kept: Labels) -> Term:
    """Take the diagonals of repeated indices, and sum those that occur nowhere else."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            x = diagonal(moveaxis(x, (i, j), (-2, -1)))
            labels = (*(c for k, c in enumerate(labels) if k not in (i, j)), label)
    gone = tuple(i for i, c in enumerate(labels) if c not in kept)
    if gone:
        x = sum(x, axis=gone, dtype=x.dtype)
        labels = tuple(c for c in labels if c in kept)
    return labels, x


def _arranged(x: Tensor, labels: Labels, order: Labels) -> Tensor:
    return x if labels == order else transpose(x, [labels.index(c) for c in order])


def _contract(first: Term, second: Term, needed: set[str]) -> Term:
    """One batched matrix product: shared indices are the batch if they are needed, else they are summed."""
    (la, a), (lb, b) = first, second
    batch = tuple(c for c in la if c in lb and c in needed)
    summed = tuple(c for c in la if c in lb and c not in needed)
    only_a = tuple(c for c in la if c not in lb)
    only_b = tuple(c for c in lb if c not in la)
    a = _arranged(a, la, batch + only_a + summed)
    b = _arranged(b, lb, batch + summed + only_b)
    lead = a.shape[: len(batch)]
    size_a = a.shape[len(batch) : len(batch) + len(only_a)]
    size_b = b.shape[len(batch) + len(summed) :]
    if summed:
        n, m, k = math.prod(size_a), math.prod(size_b), math.prod(a.shape[len(batch) + len(only_a) :])
        out = matmul(reshape(a, (*lead, n, k)), reshape(b, (*lead, k, m)))
    else:  # an outer or elementwise product needs no matrix product
        out = reshape(a, a.shape + (1,) * len(size_b)) * reshape(b, (*lead, *(1,) * len(size_a), *size_b))
    return batch + only_a + only_b, reshape(out, (*lead, *size_a, *size_b))
