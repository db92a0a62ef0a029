"""Lines with products: matrices, convolutions, pooling, attention, losses."""

from __future__ import annotations

import math

from ..writer import FLOAT, INEXACT, INTEGER, Statement, UnsuitableError, Writer

ACTIVATIONS = ("{0}", "wl.relu({0})", "wl.tanh({0})", "F.gelu({0})", "wl.sigmoid({0})", "F.silu({0})")


def layer(w: Writer) -> None:
    """A product with bias, activation and residual."""
    x = w.one((FLOAT,), rank=2, most=100_000)
    k, n = w.shape(x)[-1], w.among(1, 3, 8, 17, 33)
    if k > 5000:
        raise UnsuitableError
    text = f"{x} @ {w.weight(x, (k, n))} * {1 / math.sqrt(max(k, 1)):.3f}"
    if w.chance(0.7):
        text = f"{text} + {w.weight(x, (n,))}"
    h = w.add(w.among(*ACTIVATIONS).format(f"({text})"))
    if w.chance(0.5):
        h = w.add(f"{h} + 0.5 * {w.partner(h)}")
    if w.chance(0.4):
        w.add(f"{x} + {h} @ {w.weight(x, (n, k))} * {1 / math.sqrt(n):.3f}")


def product(w: Writer) -> None:
    x = w.one((*INEXACT, INTEGER), rank=2, most=100_000)
    k, rows = w.shape(x)[-1], w.shape(x)[-2]
    is_exact = "int" in w.dtype(x)
    if max(k, rows) > 5000:
        raise UnsuitableError
    texts = [f"{x} @ {w.weight(x, (k,))}", f"{x} @ {w.weight(x, (k, w.among(1, 2, 5, 16, 19)))}"]
    if rows <= 300:
        texts.append(f"{x} @ {x}.mT")
    if k <= 300:
        texts += [f"{x}.mT @ {w.fitted(x, w.shape(x))}", f"{w.weight(x, (3, rows))} @ {x}"]
    if not is_exact:
        texts += [
            f"wl.einsum('...ij,kj->...ik', {x}, {w.weight(x, (4, k))})",
            f"wl.einsum('...ij,...ij->...i', {x}, {w.fitted(x, w.shape(x))})",
            f"wl.einsum('...ij->...j', {x})",
            f"wl.tensordot({x}, {w.weight(x, (k, 3))}, axes=1)",
            f"wl.vecdot({x}, {w.weight(x, (k,))})",
            f"wl.einsum('...ij,jk,k->...i', {x}, {w.weight(x, (k, 5))}, {w.weight(x, (5,))})",
        ]
    w.add(w.among(*texts), exact=is_exact)


def _window(w: Writer, d: int, sizes: tuple[int, ...]) -> str:
    """A size of a window, for all axes or for each."""
    one = [w.among(*sizes) for _ in range(d)]
    if d == 1 or w.chance(0.5):
        return str(one[0])
    return str(tuple(one))


def _image(w: Writer, d: int, channels: int) -> str:
    shape = (w.among(1, 2, 3), *[w.among(4, 5, 6, 9, 13) for _ in range(d)], channels)
    if d == 1 and w.chance(0.3):
        shape = (2, w.among(100, 1001, 5000), channels)
    return w.fitted(w.one((FLOAT,)), shape)


def convolution(w: Writer) -> None:
    d, c, o = w.among(1, 2, 2, 2, 3), w.among(1, 2, 3, 4, 8), w.among(1, 3, 8, 17)
    groups = w.among(1, 1, 1, c)
    o *= groups
    x = _image(w, d, c)
    window = tuple(w.among(1, 2, 3) for _ in range(d))
    weight = w.weight(x, (*window, c // groups, o))
    bias = w.weight(x, (o,)) if w.chance(0.5) else "None"
    stride = _window(w, d, (1, 1, 2, 3))
    padding = w.among("'same'", "'valid'", _window(w, d, (0, 1, 2, 3))) if stride == "1" else _window(w, d, (0, 1, 2))
    dilation = _window(w, d, (1, 1, 2))
    if w.chance(0.25):
        weight = w.weight(x, (*window, o // groups, c)) if w.chance(0.5) else weight
        padding = _window(w, d, (0, 1))
        w.add(f"F.conv_transpose{d}d({x}, {weight}, {bias}, stride={stride}, padding={padding}, groups={groups})")
        return
    text = (
        f"F.conv{d}d({x}, {weight}, {bias}, stride={stride}, padding={padding}, dilation={dilation}, groups={groups})"
    )
    w.add(w.among(*ACTIVATIONS[:4]).format(text))


def pooling(w: Writer) -> None:
    d = w.among(1, 2, 2)
    x = _image(w, d, w.among(1, 3, 8))
    kernel = _window(w, d, (1, 2, 2, 3))
    smallest = min(int(k) for k in kernel.strip("()").split(","))
    stride, ceil = w.among("None", _window(w, d, (1, 2, 3))), w.chance(0.3)
    padding = w.number(0, smallest // 2 + 1)
    kind = w.among("max", "max", "avg", "avg", "lp", "adaptive_avg", "adaptive_max")
    if kind == "max":
        dilation = w.among(1, 1, 2)
        w.add(f"F.max_pool{d}d({x}, {kernel}, {stride}, {padding}, {dilation}, ceil_mode={ceil})", exact=x in w.exact)
    elif kind == "avg":
        w.add(
            f"F.avg_pool{d}d({x}, {kernel}, {stride}, {padding}, ceil_mode={ceil}, count_include_pad={w.chance(0.5)})"
        )
    elif kind == "lp":
        w.add(f"F.lp_pool{d}d({x}, 2, {kernel}, {stride}, ceil_mode={ceil})")
    else:
        w.add(f"F.{kind}_pool{d}d({x}, {w.among(1, 2, 3)})")


def patches(w: Writer) -> None:
    x = _image(w, 2, w.among(1, 3))
    texts = [
        f"F.unfold({x}, {w.among(1, 2, 3)}, stride={w.among(1, 2)}, padding={w.among(0, 1)}, dilation={w.among(1, 2)})",
        f"F.interpolate({x}, scale_factor={w.among(2, 3)}, mode={w.among('nearest', 'bilinear')!r})",
        f"F.interpolate({x}, size=({w.among(3, 7)}, {w.among(2, 11)}), mode={w.among('nearest', 'bilinear')!r})",
    ]
    w.add(w.among(*texts))


def attention(w: Writer) -> None:
    x = w.one((FLOAT,))
    n, m, heads, d = w.among(1, 5, 17, 33), w.among(1, 7, 17, 40), w.among(1, 2), w.among(1, 4, 8, 17)
    q, k, v = (w.weight(x, (w.among(1, 2), size, heads, d)) for size in (n, m, m))
    k, v = (w.fitted(y, (w.shape(q)[0], m, heads, d)) for y in (k, v))
    options = []
    if w.chance(0.4):
        shape = w.among((n, m), (heads, n, m), (1, 1, m))
        options.append(f"mask={w.fitted(w.one(('bool',), exact=True), shape)}")
    if w.chance(0.3):
        options.append(f"bias={w.weight(x, (n, m))}")
    if w.chance(0.3):
        options.append("is_causal=True")
    if w.chance(0.2):
        options.append("scale=0.25")
    w.add(f"F.dot_product_attention({', '.join([q, k, v, *options])})")


def loss(w: Writer) -> None:
    x = w.one((FLOAT,), rank=2, most=20_000)
    shape = w.shape(x)
    if 0 in shape:
        raise UnsuitableError
    flat = w.add(f"{x}.reshape(-1, {shape[-1]})", exact=x in w.exact)
    target = w.indices((w.shape(flat)[0],), shape[-1])
    end = f"reduction={w.among('mean', 'none', 'sum')!r})"
    texts = [
        f"F.cross_entropy({flat}, {target} % {shape[-1]}, label_smoothing={w.among(0.0, 0.1)}, {end}",
        f"F.mse_loss({flat}, {w.weight(x, w.shape(flat))}, {end}",
        f"F.huber_loss({flat}, {w.weight(x, w.shape(flat))}, {end}",
        f"F.binary_cross_entropy_with_logits({flat}, wl.sigmoid({w.weight(x, w.shape(flat))}), {end}",
    ]
    w.add(w.among(*texts))


def transform(w: Writer) -> None:
    """What NumPy computes in the middle of a native program."""
    x = w.one(INEXACT, rank=1, most=20_000)
    if 0 in w.shape(x) or w.dtype(x) in ("float16", "bfloat16"):
        raise UnsuitableError
    if w.chance(0.5):
        text = f"wl.fft.ifft(wl.fft.fft({x}.astype(wl.complex128), axis={w.axis(x)}) * 0.5, axis=-1)"
        w.add(f"wl.real({text})" if w.chance(0.5) else text)
        return
    n = w.among(1, 2, 3, 5)
    m = w.fitted(x, (w.among(1, 2), n, n))
    m = w.add(f"{m} + {n + 2} * wl.eye({n}).astype({m}.dtype)")
    b = w.weight(m, (*w.shape(m)[:-1], 2))
    w.add(w.among(f"wl.linalg.solve({m}, {b})", f"wl.linalg.inv({m}) @ {b}", f"wl.linalg.det({m})", f"{m} @ {m} @ {b}"))


def dropped(w: Writer) -> None:
    x = w.one((FLOAT,))
    key = f"wl.random.key({w.number(0, 100)})"
    mask = f"wl.random.{w.among('bernoulli', 'uniform')}({w.shape(x)}, key={key})"
    w.add(f"wl.where({mask}.astype(wl.float32) > 0.3, {x} / 0.7, 0.0)")


STATEMENTS: dict[str, tuple[Statement, float]] = {
    "layer": (layer, 1.5),
    "product": (product, 2),
    "convolution": (convolution, 1),
    "pooling": (pooling, 1),
    "patches": (patches, 0.4),
    "attention": (attention, 0.7),
    "loss": (loss, 0.7),
    "transform": (transform, 0.4),
    "dropped": (dropped, 0.5),
}
