"""Lines that move elements: views, slices with steps, joins, padding."""

from __future__ import annotations

from ..writer import ANY, NUMERIC, Statement, Writer


def reshape(w: Writer) -> None:
    x = w.one(ANY)
    n = w.size(x)
    shape: list[int] = []
    if n == 0:
        w.add(f"{x}.reshape({w.shape(x)[::-1]})", exact=x in w.exact)
        return
    while n > 1 and len(shape) < 3:
        factor = w.among(*[d for d in range(1, min(n, 5000) + 1) if n % d == 0][:12])
        shape.append(factor)
        n //= factor
    w.add(f"{x}.reshape({(*shape, n)})", exact=x in w.exact)


def transpose(w: Writer) -> None:
    x = w.one(ANY, rank=2)
    w.add(f"wl.transpose({x}, {tuple(int(a) for a in w.pick.permutation(w.rank(x)))})", exact=x in w.exact)


def cut(w: Writer) -> None:
    """A slice of every axis, with steps of both signs."""
    x = w.one(ANY, rank=1)
    index = []
    for n in w.shape(x):
        kind = w.number(0, 5)
        if kind == 0 and n:
            index.append(str(w.number(-n, n)))
        elif kind == 1:
            index.append(":")
        else:
            step = w.among(1, 1, 2, 3, -1, -2)
            start = w.number(0, n) if n else 0
            index.append(f"{start}::{step}" if step > 0 else f"{n - 1 - start if n else ''}::{step}")
    w.add(f"{x}[{', '.join(index)}]", exact=x in w.exact)


def flip(w: Writer) -> None:
    x = w.one(ANY, rank=1)
    texts = [
        "wl.flip({0}, axis={1})",
        "wl.flip({0})",
        "wl.roll({0}, {2}, axis={1})",
        "wl.roll({0}, {2})",
        "wl.repeat({0}, 2, axis={1})",
    ]
    texts += [
        "wl.moveaxis({0}, {1}, 0)",
        "wl.expand_dims({0}, axis=0)",
        "wl.tile({0}, 2)",
        "{0}[..., None]",
        "wl.squeeze({0}[None], axis=0)",
    ]
    w.add(w.among(*texts).format(x, w.axis(x), w.number(-5, 6)), exact=x in w.exact)


def broadcast(w: Writer) -> None:
    x = w.one(ANY, most=2000)
    shape = tuple(w.among(2, 3, 5) if n == 1 and w.chance(0.7) else n for n in w.shape(x))
    front = tuple(w.among(1, 2, 3, 17) for _ in range(w.number(0, 3)))
    w.add(f"wl.broadcast_to({x}, {front + shape})", exact=x in w.exact)


def join(w: Writer) -> None:
    x = w.one(ANY, rank=1)
    y = w.fitted(w.weight(x, (max(1, min(w.size(x), 50)),)), w.shape(x))
    parts = w.among("{0}, {1}", "{1}, {0}, {1}", "{0}, {0}", "{0}")
    name = "stack" if w.chance(0.3) else "concat"
    w.add(f"wl.{name}([{parts.format(x, y)}], axis={w.axis(x)})", exact={x, y} <= w.exact)


def split(w: Writer) -> None:
    x = w.one(ANY, rank=1)
    axis = w.axis(x)
    n = w.shape(x)[axis]
    at = w.number(0, n + 1)
    w.add(f"wl.split({x}, [{at}], axis={axis})[{w.among(0, 1)}]", exact=x in w.exact)


def pad(w: Writer) -> None:
    x = w.one(ANY, rank=1, most=50_000)
    widths = [(w.number(0, 3), w.number(0, 3)) for _ in w.shape(x)]
    mode = w.among("constant", "constant", "reflect", "edge", "wrap")
    w.add(f"wl.pad({x}, {widths}, mode={mode!r})", exact=x in w.exact)


def triangle(w: Writer) -> None:
    x = w.one(ANY, rank=2)
    w.add(f"wl.{w.among('tril', 'triu')}({x}, k={w.number(-3, 4)})", exact=x in w.exact)


def diagonal(w: Writer) -> None:
    x = w.one(NUMERIC, rank=2)
    text = w.among("wl.diagonal({0}, offset={1})", "wl.trace({0}, offset={1})")
    w.add(text.format(x, w.number(-2, 3)), exact="diagonal" in text and x in w.exact)


STATEMENTS: dict[str, tuple[Statement, float]] = {
    "reshape": (reshape, 1.5),
    "transpose": (transpose, 1.5),
    "slice": (cut, 2),
    "flip": (flip, 1.5),
    "broadcast": (broadcast, 1),
    "join": (join, 1),
    "split": (split, 0.7),
    "pad": (pad, 0.8),
    "triangle": (triangle, 0.4),
    "diagonal": (diagonal, 0.4),
}
