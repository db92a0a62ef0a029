"""Lines with loops, branches, and functions of functions."""

from __future__ import annotations

from ..writer import FLOAT, Statement, UnsuitableError, Writer


def _sequence(w: Writer) -> tuple[str, str]:
    """A sequence of vectors, and a matrix for its state."""
    x = w.one((FLOAT,), rank=2)
    if 0 in w.shape(x):
        raise UnsuitableError
    width = w.among(1, 3, 8, 17)
    steps = min(w.shape(x)[0], w.among(1, 2, 5, 9))
    x = w.fitted(x, (steps, width))
    return x, w.weight(x, (width, width))


def scan(w: Writer) -> None:
    x, m = _sequence(w)
    kind = w.number(0, 5)
    over, steps = x, w.shape(x)[0]
    parts: tuple[str, ...] = ("0", "1")
    if kind == 0:
        body, start = f"lambda h, row: (wl.tanh(h @ {m} * 0.3 + row), h * row)", f"wl.zeros_like({x}[0])"
    elif kind == 1:  # several carries, which change places
        carries = "(wl.tanh(s[1] + row), s[0] * wl.sigmoid(row), s[2] + 1)"
        body = f"lambda s, row: ({carries}, s[0] - s[1] * s[2].astype(row.dtype))"
        start, parts = f"({x}[0], wl.zeros_like({x}[0]), wl.zeros((), dtype=wl.int32))", ("0][0", "0][1", "1")
    elif kind == 2:  # a loop in a loop
        inner = f"wl.scan(lambda s, v: (wl.sin(s + v * row[0]), s * v), h[0], row, reverse={w.chance(0.5)})"
        body, start = f"lambda h, row: (wl.tanh(h * {inner}[0] + row), {inner}[1])", f"{x}[0] * 0.5"
    elif kind == 3:
        body, start, over = f"lambda h, i: (h * 0.5 + {x}[i], wl.sin(h))", f"{x}[0]", f"wl.arange({steps})"
    else:  # a carry that is written in part
        body, start, over = "lambda h, i: (h.at[i].add(h[0] * 0.5), h.sum(axis=0))", x, f"wl.arange({steps})"
    w.add(f"wl.scan({body}, {start}, {over}, reverse={w.chance(0.5)})[{w.among(*parts)}]")


def loop(w: Writer) -> None:
    x, m = _sequence(w)
    if w.chance(0.5):
        w.add(f"wl.fori_loop(0, {w.number(0, 5)}, lambda i, y: wl.tanh(y @ {m} * 0.3 + i.astype(y.dtype) / 8), {x})")
        return
    limit = w.add(f"{w.indices((), 5)} % 5", exact=True)
    body = w.among(
        "wl.tanh(s[1] @ {1} * 0.3 + {0})", "s[1] * 0.5 + {0}", "wl.sort(s[1], axis=0) - 1", "wl.flip(s[1]) * {0}"
    )
    text = f"lambda s: (s[0] + 1, {body.format(x, m)})"
    # the number of steps is not known, so there is no reverse mode
    start = f"(wl.zeros((), dtype=wl.int64), wl.stop_gradient({x}))"
    w.add(f"wl.stop_gradient(wl.while_loop(lambda s: s[0] < {limit}, {text}, {start})[1])")


def branch(w: Writer) -> None:
    x = w.one((FLOAT,), rank=1)
    y = w.fitted(w.weight(x, (7,)), w.shape(x))
    branches = [
        "lambda x, y: wl.sin(x) * y",
        "lambda x, y: x",
        "lambda x, y: wl.flip(y) + x.sum()",
        "lambda x, y: wl.cumsum(y, axis=0) - x",
    ]
    if w.chance(0.5):
        mask = w.fitted(w.one(("bool",), exact=True), ())
        w.add(f"wl.cond({mask}, {w.among(*branches)}, {w.among(*branches)}, {x}, {y})")
    else:
        w.add(f"wl.switch({w.indices((), 4)} % 4, [{', '.join(branches)}], {x}, {y})")


def mapped(w: Writer) -> None:
    x = w.one((FLOAT,), rank=2)
    if 0 in w.shape(x):
        raise UnsuitableError
    f = w.among(
        "lambda row: row * wl.softmax(row, axis=0).max() + wl.sin(row)",
        "lambda row: wl.cumsum(row, axis=0) - row[0]",
        "lambda row: wl.grad(lambda y: (wl.sin(y) * y).sum())(row)",
        "lambda row: wl.jvp(wl.tanh, (row,), (row,))[1]",
        "lambda row: wl.sort(row, axis=0) + row.mean()",
    )
    how = [
        "wl.vmap({0})({1})",
        "wl.vmap({0}, in_axes=1, out_axes=1)({1})",
        "wl.checkpoint({0})({1})",
        "wl.jit({0})({1})",
    ]
    if w.shape(x)[0] <= 20:
        how.append("wl.map({0}, {1})")
    w.add(w.among(*how).format(f, x))


def stopped(w: Writer) -> None:
    x = w.one((FLOAT,))
    w.add(f"wl.stop_gradient({x}) * {x}")


STATEMENTS: dict[str, tuple[Statement, float]] = {
    "scan": (scan, 0.8),
    "loop": (loop, 0.6),
    "branch": (branch, 0.6),
    "mapped": (mapped, 0.7),
    "stopped": (stopped, 0.2),
}
