"""Lines that read and write at computed places, and that put elements in order."""

from __future__ import annotations

from ..writer import ANY, INEXACT, NUMERIC, REAL, Statement, UnsuitableError, Writer


def gather(w: Writer) -> None:
    x = w.one(ANY, rank=2)
    shape, m, kind = w.shape(x), w.among(0, 1, 3, 6, 100), w.number(0, 6)
    if 0 in shape:
        raise UnsuitableError
    is_exact = x in w.exact
    if kind == 0:
        w.add(f"{x}[{w.indices((m,), shape[0])}]", exact=is_exact)
    elif kind == 1:
        w.add(f"{x}[{w.indices((m,), shape[0])}, {w.indices((2, m), shape[1])}]", exact=is_exact)
    elif kind == 2:
        axis = w.axis(x)
        index = w.indices((*shape[: axis % len(shape)], min(m, 6), *shape[axis % len(shape) + 1 :]), shape[axis])
        w.add(f"wl.take_along_axis({x}, {index} % {shape[axis]}, axis={axis})", exact=is_exact)
    elif kind == 3:
        w.add(f"{x}[..., {w.indices((m,), shape[-1])}]", exact=is_exact)
    elif kind == 4:
        axis = w.axis(x)
        w.add(f"wl.take({x}, {w.indices((m,), shape[axis])}, axis={axis})", exact=is_exact)
    else:
        start = w.indices((), shape[0])
        w.add(
            f"wl.dynamic_slice({x}, ({start}, {', '.join('0' * (len(shape) - 1))},), {(1, *shape[1:])})", exact=is_exact
        )


def scatter(w: Writer) -> None:
    """Several values for one place, mostly."""
    x = w.one(NUMERIC, rank=2)
    shape, m = w.shape(x), w.among(1, 5, 5, 40, 3000)
    rest = shape[1:]
    if 0 in shape or m * max(1, w.size(x) // shape[0]) > 200_000:
        raise UnsuitableError
    if w.chance(0.3):
        ids = w.indices((shape[0],), min(m, 50))
        name = w.among("sum", "sum", "mean", *(["max", "min", "prod"] if not w.dtype(x).startswith("complex") else []))
        w.add(f"wl.segment_{name}({x}, {ids} % {min(m, 50)}, num_segments={min(m, 50)})")
        return
    value = w.weight(x, (m, *rest))
    method = w.among("add", "add", "set", "multiply", *(["max", "min"] if not w.dtype(x).startswith("complex") else []))
    w.add(f"{x}.at[{w.indices((m,), shape[0])}].{method}({value})")


def lines(w: Writer) -> None:
    """Entries of lines, in order or not, with lines that are empty; and products with sparse matrices."""
    x = w.one(NUMERIC, rank=1, most=20_000)
    shape, count, kind = w.shape(x), w.among(1, 3, 50), w.number(0, 5)
    if 0 in shape:
        raise UnsuitableError
    m = shape[0] if kind < 2 else w.among(1, 7, 60)

    def drawn(size: int, seed: int, in_order: bool = False) -> str:
        made = f"np.random.default_rng({seed}).integers(0, {size}, {m})"
        return f"np.sort({made})" if in_order else made

    def pattern(n: int) -> str:
        return f"wl.sparse.Pattern.of({drawn(n, seed, in_order)}, {drawn(shape[0], seed + 1)}, {(n, shape[0])})"

    seed, in_order = w.number(0, 100), w.chance(0.5)
    if kind < 2:
        real = w.dtype(x).startswith("float")
        ordered = not w.dtype(x).startswith("complex")
        extremes, weights = ["max", "min"] if ordered else [], ["softmax", "logsumexp"] if real else []
        name = w.among("sum", "sum", "mean", *extremes, *weights)
        w.add(f"wl.sparse.segment_{name}({x}, wl.sparse.Incidence.of({drawn(count, seed, in_order)}, {count}))")
    elif kind == 2:
        w.add(f"wl.sparse.gather({x}, wl.sparse.Incidence.of({drawn(shape[0], seed)}, {shape[0]}))", exact=x in w.exact)
    elif kind == 3 or len(shape) == 1:
        w.add(f"wl.sparse.matmul({w.weight(x, (m,))}, {pattern(count)}, {x})")
    else:
        w.add(f"wl.sparse.sampled_matmul({x}, {w.weight(x, shape)}, {pattern(shape[0])})")


def update(w: Writer) -> None:
    x = w.one(NUMERIC, rank=1)
    n = w.shape(x)[0]
    if n == 0:
        raise UnsuitableError
    start, step = w.number(0, n), w.among(1, 2, 3)
    part = w.add(f"{x}[{start}::{step}]", exact=x in w.exact)
    value = w.weight(x, w.shape(part)) if w.chance(0.7) else "1"
    w.add(f"{x}.at[{start}::{step}].{w.among('set', 'add', 'multiply')}({value})")


def order(w: Writer) -> None:
    kind = w.number(0, 5)
    if kind < 2:
        x = w.one(REAL, rank=1, exact=w.chance(0.8))
        name = w.among("sort", "argsort")
        w.add(f"wl.{name}({x}, axis={w.axis(x)}, descending={w.chance(0.4)})", exact=x in w.exact)
    elif kind == 2:
        x = w.one(REAL, rank=1, exact=True)
        axis = w.axis(x)
        n = w.shape(x)[axis]
        k = w.number(0, min(n, 9) + 1)
        w.add(f"wl.top_k({x}, {k}, axis={axis}, largest={w.chance(0.5)})[{w.among(0, 1)}]", exact=True)
    elif kind == 3:
        x = w.one(REAL, exact=True)
        y = w.fitted(w.one(REAL, exact=True), (w.among(0, 1, 5, 64),))
        w.add(f"wl.searchsorted(wl.sort({y}.astype({x}.dtype)), {x}, side={w.among('left', 'right')!r})", exact=True)
    else:
        x = w.one(INEXACT, rank=1, exact=True)
        w.add(f"wl.take_along_axis({x}, wl.argsort(wl.real({x}), axis=-1), axis=-1)", exact=True)


def one_hot(w: Writer) -> None:
    n = w.among(1, 3, 17)
    shape = (w.among(1, 5, 33),)
    w.add(f"wl.one_hot({w.indices(shape, n)} % {n}, {n})", exact=True)


STATEMENTS: dict[str, tuple[Statement, float]] = {
    "gather": (gather, 1.5),
    "scatter": (scatter, 1.5),
    "lines": (lines, 1),
    "update": (update, 1),
    "order": (order, 1.5),
    "one hot": (one_hot, 0.3),
}
