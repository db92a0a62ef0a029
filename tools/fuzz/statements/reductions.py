"""Lines that combine elements along axes, and what is made of such sums in one go."""

from __future__ import annotations

from ..writer import BOOL, FLOAT, INEXACT, INTEGER, NUMERIC, REAL, Statement, Writer


def reduction(w: Writer) -> None:
    x = w.one(INEXACT, rank=1)
    axes, keep = w.axes(x), w.chance(0.5)
    names = ["sum", "mean", "prod", "sum", "mean"]
    if w.dtype(x).startswith("complex"):
        names = ["sum", "mean", "prod"]
    else:
        names += ["max", "min", "var", "std", "logsumexp", "amax"]
    name = w.among(*names)
    if name == "prod" and w.size(x) > 20:
        x = w.add(f"wl.tanh({x}) + 1.1") if not w.dtype(x).startswith("complex") else x
    made = w.add(f"wl.{name}({x}, axis={axes}, keepdims={keep})", exact=name in ("max", "min", "amax") and x in w.exact)
    if keep and w.chance(0.5):
        w.add(w.among("{0} - {1}", "{0} * {1}", "{0} / (1 + {1} * {1})").format(x, made))


def of_product(w: Writer) -> None:
    """A reduction with elementwise work inside it."""
    x = w.one(INEXACT, rank=1)
    y = w.partner(x)
    inner = w.among("{0} * {1}", "({0} - {1}) * ({0} - {1})", "wl.exp(-{0} * {0}) + {1}", "wl.abs({0} * {1})").format(
        x, y
    )
    w.add(f"wl.{w.among('sum', 'mean')}({inner}, axis={w.axes(x)}, keepdims={w.chance(0.5)})")


def of_integers(w: Writer) -> None:
    x = w.one((INTEGER, BOOL), rank=1)
    names = ["sum", "prod", "any", "all", "count_nonzero"] + ([] if w.dtype(x) == "bool" else ["max", "min"])
    w.add(f"wl.{w.among(*names)}({x}, axis={w.axes(x)}, keepdims={w.chance(0.5)})", exact=True)


def extreme_place(w: Writer) -> None:
    x = w.one(REAL, rank=1, exact=True)
    axis = w.axis(x) if w.chance(0.8) else None
    w.add(f"wl.{w.among('argmax', 'argmin')}({x}, axis={axis}, keepdims={w.chance(0.3)})", exact=True)


def cumulative(w: Writer) -> None:
    x = w.one(NUMERIC, rank=1)
    is_exact = not w.dtype(x).startswith(("f", "b", "c"))
    if w.chance(0.6):
        w.add(f"wl.cumulative_sum({x}, axis={w.axis(x)}, include_initial={w.chance(0.2)})", exact=is_exact)
    else:
        x = x if is_exact or w.size(x) < 20 else w.add(f"wl.sin({x})")
        w.add(f"wl.cumulative_prod({x}, axis={w.axis(x)})", exact=is_exact)


def running(w: Writer) -> None:
    x = w.one((FLOAT, INTEGER), rank=1)
    if w.chance(0.6):
        part = w.among("values", "indices") if x in w.exact else "values"  # ties are broken by rounding
        w.add(f"wl.{w.among('cummax', 'cummin')}({x}, axis={w.axis(x)}).{part}", exact=x in w.exact)
    else:
        x = w.one((FLOAT,), rank=1)
        w.add(f"wl.logcumsumexp({x}, axis={w.axis(x)})")


def softmax(w: Writer) -> None:
    x = w.one((FLOAT,), rank=1)
    name = w.among("wl.softmax", "wl.log_softmax", "wl.softmax")
    w.add(f"{name}({x}, axis={w.axis(x)})")


def normalization(w: Writer) -> None:
    x = w.one((FLOAT,), rank=2)
    n, kind = w.shape(x)[-1], w.number(0, 6)
    scale, shift = w.weight(x, (n,)), w.weight(x, (n,))
    if kind == 0:
        w.add(f"F.layer_norm({x}, ({n},), {scale}, {shift}, eps={w.among(1e-5, 0.1)})")
    elif kind == 1:
        k = w.number(1, w.rank(x) + 1)
        w.add(f"F.layer_norm({x}, {w.shape(x)[-k:]}, eps={w.among(1e-5, 0.1)})")
    elif kind == 2:
        w.add(f"F.rms_norm({x}, ({n},), {scale}, eps={w.among(1e-5, 0.1)})")
    elif kind == 3:
        w.add(f"F.batch_norm({x}, None, None, {scale}, {shift}, training=True, eps=0.1)")
    elif kind == 4:
        groups = w.among(*[g for g in (1, 2, 3, 4) if n % g == 0 and n])
        w.add(f"F.group_norm({x}, {groups}, {scale}, {shift}, eps=0.1)")
    else:
        axis = w.axis(x)
        w.add(f"({x} - {x}.mean(axis={axis}, keepdims=True)) / wl.sqrt({x}.var(axis={axis}, keepdims=True) + 0.1)")


def norms(w: Writer) -> None:
    x = w.one((FLOAT,), rank=1)
    text = w.among(
        "wl.norm({0}, axis={1})", "wl.normalize({0}, axis={1})", "wl.sq_norm({0}, axis={1})", "wl.diff({0}, axis={1})"
    )
    w.add(text.format(x, w.axis(x)))


STATEMENTS: dict[str, tuple[Statement, float]] = {
    "reduction": (reduction, 4),
    "reduced product": (of_product, 2),
    "reduced integers": (of_integers, 1),
    "extreme place": (extreme_place, 0.7),
    "cumulative": (cumulative, 1.5),
    "running": (running, 0.5),
    "softmax": (softmax, 1.5),
    "normalization": (normalization, 1.5),
    "norms": (norms, 0.7),
}
