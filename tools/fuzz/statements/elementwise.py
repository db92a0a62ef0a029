"""Elementwise lines: arithmetic, functions, comparisons, bits, conversions."""

from __future__ import annotations

from ..inputs import FLOATS, INTEGERS
from ..writer import ANY, BOOL, COMPLEX, FLOAT, INEXACT, INTEGER, NUMERIC, REAL, Statement, Writer

SMOOTH = (
    *["sin", "cos", "tanh", "exp", "expm1", "log", "log1p", "sqrt", "square", "sinh", "cosh", "asinh", "atan"],
    *["tan", "asin", "acos", "acosh", "atanh", "log2", "log10", "exp2", "rsqrt", "reciprocal"],
)
REAL_ONLY = (
    *["wl.sigmoid", "wl.erf", "wl.erfc", "wl.erfinv", "wl.softplus", "wl.log_sigmoid", "wl.logit", "F.gelu", "F.silu"],
    *["F.mish", "F.elu", "F.selu", "F.softsign", "F.celu", "F.leaky_relu", "F.hardswish", "F.hardsigmoid", "F.relu6"],
    *["F.tanhshrink", "F.softshrink", "wl.relu"],
)
TAMED = (
    "wl.exp(-{0} * {0})",
    "wl.log1p({0} * {0})",
    "wl.sqrt({0} * {0} + 1)",
    "1 / (2 + wl.sin({0}))",
    "wl.tanh({0} / 4)",
)
SPECIAL = (
    *["lgamma({0})", "digamma(wl.abs({0}) + 1.6)", "i0e({0})", "i1e({0})", "sinc({0})", "ndtr({0})", "log_ndtr({0})"],
    *["ndtri(wl.sigmoid({0}))", "erfcinv(wl.sigmoid({0}))", "xlog1py({0}, {1} * {1})", "entr({0})"],
)
ITERATED = (
    "gammainc(wl.abs({0}) + 0.5, {1} * {1})",
    "betainc(wl.abs({0}) + 0.5, wl.abs({0}) + 1, wl.sigmoid({1}))",
)
STEPPED = ("wl.floor", "wl.ceil", "wl.trunc", "wl.round", "wl.sign")


def smooth(w: Writer) -> None:
    x = w.one(INEXACT)
    if w.chance(0.4):
        w.add(w.among(*TAMED).format(x))
    elif w.dtype(x).startswith("complex") or w.chance(0.6):
        w.add(f"wl.{w.among(*SMOOTH)}({x})")
    else:
        w.add(f"{w.among(*REAL_ONLY)}({x})")


def special(w: Writer) -> None:
    x = w.one((FLOAT,))
    texts = SPECIAL if w.size(x) > 2000 else SPECIAL + ITERATED  # the reference takes its time for these
    w.add("wl.special." + w.among(*texts).format(x, w.partner(x, (FLOAT,))))


def exact(w: Writer) -> None:
    """What needs no rounding."""
    kind = w.among("any", "step", "test", "part")
    if kind == "any":
        x = w.one(NUMERIC)
        w.add(
            w.among("-{0}", "wl.abs({0})", "wl.positive({0})").format(x),
            exact=x in w.exact and not w.dtype(x).startswith("complex"),
        )
    elif kind == "step":
        x = w.one((FLOAT,), exact=True)
        w.add(f"{w.among(*STEPPED)}({x})", exact=True)
    elif kind == "test":
        x = w.one(INEXACT, exact=True)
        w.add(f"wl.{w.among('isfinite', 'isnan', 'isinf')}({x})", exact=True)
    else:
        x = w.one((COMPLEX, FLOAT))
        w.add(f"wl.{w.among('real', 'imag', 'conj')}({x})", exact=x in w.exact)


def binary(w: Writer) -> None:
    x = w.one(INEXACT)
    y = w.partner(x)
    real = not w.dtype(x).startswith("complex")
    texts = [
        "{0} + {1}",
        "{0} - {1}",
        "{0} * {1}",
        "{0} / {1}",
        "{0} / (1 + {1} * {1})",
        "{0} * {1} - {1} * {0}",
        "{0} * {0} - {1}",
    ]
    if real:
        texts += [
            *["wl.maximum({0}, {1})", "wl.minimum({0}, {1})", "wl.logaddexp({0}, {1})", "wl.atan2({0}, {1})"],
            *["wl.hypot({0}, {1})", "(wl.abs({0}) + 0.5) ** {1}", "wl.copysign({0}, {1})", "wl.xlogy({0}, {1})"],
            *["wl.pow({0}, {1})", "wl.clip({0}, -0.5, wl.abs({1}))"],
        ]
    if w.chance(0.5):
        x, y = y, x
    w.add(w.among(*texts).format(x, y))


def with_number(w: Writer) -> None:
    x = w.one(INEXACT)
    number = w.among(2, -1, 0.5, 3.0, 0.1, 1e-3)
    texts = [
        "{0} * {1}",
        "{0} + {1}",
        "{1} - {0}",
        "{1} / {0}",
        "{0} / {1}",
        "{0} ** 2",
        "{0} ** 3",
        "{0} ** -1",
        "{0} ** 0.5",
    ]
    if not w.dtype(x).startswith("complex"):
        texts += ["wl.maximum({0}, {1})", "wl.clip({0}, -{1}, {1})", "{1} ** {0}", "wl.where({0} > {1}, {0}, 0.0)"]
    w.add(w.among(*texts).format(x, number))


def remainders(w: Writer) -> None:
    """Functions with jumps, of numbers that both engines agree on."""
    x = w.one((FLOAT,), exact=True)
    y = w.fitted(w.one((FLOAT,), exact=True), w.shape(x))
    text = w.among(
        "wl.remainder({0}, {1})",
        "wl.floor_divide({0}, {1})",
        "wl.nextafter({0}, {1}.astype({0}.dtype))",
        "{0} % 0.75",
        "wl.signbit({0})",
        "{0} // 0.3",
    )
    w.add(text.format(x, y), exact=True)


def integers(w: Writer) -> None:
    x = w.one((INTEGER,))
    y = w.partner(x, (INTEGER,))
    if w.dtype(y) != w.dtype(x) and w.chance(0.7):
        y = w.add(f"({y} % 100).astype(wl.{w.dtype(x)})", exact=True)
    texts = [
        *["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} & {1}", "{0} | {1}", "{0} ^ {1}", "~{0}", "{0} * {0}"],
        *["{0} // ({1} | 1)", "{0} % ({1} | 1)", "{0} // {1}", "{0} % 7", "{0} // -3", "wl.maximum({0}, {1})"],
        *["wl.minimum({0}, {1})", "{0} << ({1} & 7)", "{0} >> ({1} & 7)", "{0} << {1}", "{0} ** ({1} & 3)"],
        *["wl.abs({0})", "wl.sign({0})", "wl.clip({0}, 1, 5)", "-{0}", "{0} / 3", "{0} / {1}", "wl.square({0})"],
    ]
    w.add(w.among(*texts).format(x, y), exact=True)


def comparison(w: Writer) -> None:
    x = w.one(REAL, exact=w.chance(0.9))
    y = w.fitted(w.one(REAL, exact=True), w.shape(x)) if w.chance(0.6) else str(w.among(0, 1, 0.5, -1))
    w.add(f"{x} {w.among('<', '<=', '>', '>=', '==', '!=')} {y}", exact=x in w.exact)


def logic(w: Writer) -> None:
    x = w.one((BOOL,))
    y = w.partner(x, (BOOL,))
    w.add(
        w.among("{0} & {1}", "{0} | {1}", "{0} ^ {1}", "~{0}", "wl.logical_not({0})", "{0} == {1}").format(x, y),
        exact=True,
    )


def where(w: Writer) -> None:
    x = w.one(ANY)
    y = w.partner(x)
    mask = w.fitted(w.one((BOOL,)), w.shape(x)[w.number(0, w.rank(x) + 1) :])
    w.add(w.among("wl.where({0}, {1}, {2})", "wl.where({0}, {2}, {1})").format(mask, x, y), exact={x, y} <= w.exact)


def conversion(w: Writer) -> None:
    x = w.one(ANY)
    kind, is_exact = w.dtype(x), x in w.exact
    if kind in FLOATS and w.chance(0.3):  # to integers, from numbers that both engines agree on
        x = w.one((FLOAT,), exact=True)
        limit, to = w.among(1, 100, 1e6), w.among("int8", "int32", "int64", "uint8", "uint32")
        w.add(
            f"wl.clip(wl.nan_to_num({x}), 0, {limit}).astype(wl.{to})",
            exact=True,
        )
    elif kind.startswith("complex"):
        w.add(f"{x}.astype(wl.{w.among('complex64', 'complex128')})", exact=is_exact)
    else:
        to = w.among(*FLOATS, *(() if kind in FLOATS else INTEGERS), "bool" if is_exact else "float32", "complex64")
        w.add(f"{x}.astype(wl.{to})", exact=is_exact)


def random_numbers(w: Writer) -> None:
    x = w.one((FLOAT,))
    key = f"wl.random.key({w.number(0, 100)})"
    if w.chance(0.5):
        w.add(f"wl.random.uniform({w.shape(x)}, key={key}, dtype={x}.dtype)", exact=True)
    else:
        w.add(f"{x} + wl.random.{w.among('normal', 'uniform')}({w.shape(x)}, key={key}, dtype={x}.dtype)")


STATEMENTS: dict[str, tuple[Statement, float]] = {
    "smooth": (smooth, 5),
    "special": (special, 0.5),
    "exact": (exact, 2),
    "binary": (binary, 5),
    "with number": (with_number, 3),
    "remainders": (remainders, 1),
    "integers": (integers, 3),
    "comparison": (comparison, 1),
    "logic": (logic, 0.7),
    "where": (where, 1.5),
    "conversion": (conversion, 2),
    "random": (random_numbers, 0.7),
}
