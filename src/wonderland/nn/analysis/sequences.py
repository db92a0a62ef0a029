"""What layers over sequences promise, as checks: read at once or token by token, padded or not, alone or in a batch.

Every layer that mixes tokens, attention or recurrence, is called in the same ways (see `Cache`):

    layer(x, token_mask=None, lengths=None)      the whole, (batch, time, features), or tokens (batch, time)
    layer.new_cache(rows, capacity)              what it keeps, of so many rows, with room for so many tokens
    layer.extend(x, cache, lengths=None)         some more tokens
    layer.step(x_t, cache)                       one more, without the axis of time

Where the whole comes with something else, as PyTorch's recurrent layers give their states, the first of them counts.
An `assert_` function raises an AssertionError that tells the largest difference and where it is. `compiled=True` does
the same with jitted calls. Book, sections 10.2.1, 11.1.1 and 11.2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...engines.native.threads import get_threads, set_threads
from ...transforms.derivatives import grad
from ...transforms.jit.jit import jit
from ..module.module import Module
from ..sequences.cache import Cache

__all__ = [
    "assert_cache_reorders", "assert_causal", "assert_order_free", "assert_padding_ignored", "assert_reads_on",
    "assert_rows_alone", "assert_sequence_layer", "assert_threads_agree",
]  # fmt: skip

Tolerance: TypeAlias = "float | None"
Layer: TypeAlias = Callable[..., object]  # of sequences and masks; it gives a tensor
T = TypeVar("T")
C = TypeVar("C", bound=Cache)


class ReadsOn(Protocol[C]):
    """A layer that reads on, as the head of this file tells."""

    def __call__(self, x: Tensor, /) -> object: ...
    def new_cache(self, rows: int, capacity: int, /) -> C: ...
    def extend(self, x: Tensor, cache: C, lengths: Tensor | None = ..., /) -> tuple[Tensor, C]: ...
    def step(self, x: Tensor, cache: C, /) -> tuple[Tensor, C]: ...


def assert_reads_on(
    layer: ReadsOn[C], x: ArrayLike, pieces: Sequence[int] = (), tolerance: Tolerance = None, compiled: bool = False
) -> None:
    """The whole = some tokens after others = one token after another, for sequences x. Book, section 11.2.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.MultiHeadAttention(8, 2, causal=True, positions=wl.nn.ALiBi(2))
    >>> wl.nn.assert_reads_on(layer, wl.random.normal((2, 7, 8)), pieces=[3, 1, 3])

    `pieces` are numbers of tokens that come together, by default all, then halves, then those of rows of different
    lengths: each row reads another number of real tokens with padding after them, then goes on.
    """
    name, x = "assert_reads_on", _sequences("assert_reads_on", x)
    rows, time = x.shape[:2]
    calls = _Reader(layer, compiled)
    whole = calls.whole(x)
    cuts = [list(pieces)] if pieces else [[time], [time // 2, time - time // 2]]
    for counts in cuts:
        if sum(counts) != time:
            raise InputError(f"{name}: pieces {counts} of {time} tokens.", f"numbers with the sum {time}")
        cache, parts = layer.new_cache(rows, time), []
        for part in _cut(x, counts):
            y, cache = calls.extend(part, cache)
            parts.append(np.asarray(y))
        _equal(name, whole, np.concatenate(parts, axis=1), f"the whole, and extend by {counts} tokens", tolerance)
    cache, parts = layer.new_cache(rows, time), []
    for i in range(time):
        y, cache = calls.step(x[:, i], cache)
        parts.append(np.asarray(y))
        if i in (0, time // 2):  # nothing that is kept differs from reading the beginning again
            again = calls.alone(x[:, : i + 1])[:, -1]
            _equal(name, again, parts[-1], f"{i + 1} tokens without cache and with", tolerance)
    _equal(name, whole, np.stack(parts, axis=1), "the whole, and step by step", tolerance)
    _reads_on_by_lengths(name, calls, x, whole, tolerance)


def _reads_on_by_lengths(name: str, calls: _Reader[C], x: Tensor, whole: Array, tolerance: Tolerance) -> None:
    """Rows that have read different numbers of tokens go on, each from where it is."""
    rows, time = x.shape[:2]
    first = np.array([(i * (time // 2)) // max(1, rows - 1) for i in range(rows)])
    cache = calls.layer.new_cache(rows, time)
    read = max(1, int(first.max()))
    beginning = _spoiled(np.asarray(x)[:, :read], np.arange(read) < first[:, None])
    y, cache = calls.extend(beginning, cache, arrays.asarray(first))
    for row, count in enumerate(first):
        what = f"row {row} at once, and {count} of its tokens before padding"
        _equal(name, whole[row, :count], np.asarray(y)[row, :count], what, tolerance)
    more = time - read
    rest = np.stack([np.asarray(x)[row, count : count + more] for row, count in enumerate(first)])
    y, cache = calls.extend(arrays.asarray(rest), cache)
    for row, count in enumerate(first):
        what = f"row {row} at once, and {more} tokens read after {count}"
        _equal(name, whole[row, count : count + more], np.asarray(y)[row], what, tolerance)
    found = np.asarray(cache.lengths).tolist()
    if found != (first + more).tolist():
        raise AssertionError(f"{name}: the cache has lengths {found}, and {(first + more).tolist()} were read.")


def assert_padding_ignored(
    layer: Layer,
    x: ArrayLike,
    lengths: Sequence[int] | None = None,
    tolerance: Tolerance = None,
    compiled: bool = False,
) -> None:
    """Padded left = padded right = not padded, with NaN (or the token -1) as padding, in results and gradients.

    >>> import wonderland as wl
    >>> wl.nn.assert_padding_ignored(wl.nn.TransformerBlock(8, 2), wl.random.normal((3, 5, 8)), lengths=[5, 3, 1])

    The first `lengths` tokens of the rows of x are taken, by default different numbers of them.
    """
    name, x = "assert_padding_ignored", _sequences("assert_padding_ignored", x)
    rows, time = x.shape[:2]
    counts = [time - (i * time) // rows for i in range(rows)] if lengths is None else list(lengths)
    if len(counts) != rows or not all(0 <= n <= time for n in counts):
        raise InputError(f"{name}: lengths {counts} for {rows} rows of {time} tokens.", "one for each, up to the time")
    calls = _Calls(layer, compiled)
    alone = [calls.alone(x[i : i + 1, :n])[0] if n else None for i, n in enumerate(counts)]
    real = np.arange(time) < np.array(counts)[:, None]
    right = _spoiled(np.asarray(x), real)
    left = arrays.stack([arrays.roll(right[i], time - n, axis=0) for i, n in enumerate(counts)])
    ways = {
        "right, by lengths": (right, {"lengths": arrays.asarray(counts)}, 0),
        "right, by a mask": (right, {"token_mask": arrays.asarray(real)}, 0),
        "left": (left, {"token_mask": arrays.asarray(real[:, ::-1].copy())}, 1),
    }
    for side, (padded, masks, on_left) in ways.items():
        found = calls.whole(padded, **masks)
        for i, n in enumerate(counts):
            start = (time - n) * on_left
            if n:
                what = f"row {i} alone, and padded on the {side}"
                _equal(name, alone[i], found[i, start : start + n], what, tolerance)
        _gradient_ends_at_padding(name, layer, padded, masks, side)


def _gradient_ends_at_padding(name: str, layer: Layer, x: Tensor, masks: dict[str, Tensor], side: str) -> None:
    """Padding gets no gradient, and it spoils none."""
    time = x.shape[1]
    real = masks.get("token_mask")
    real = arrays.arange(time) < masks["lengths"][:, None] if real is None else real

    def loss(x: Tensor) -> Tensor:
        y = _tensor(layer(x, **masks))
        y = arrays.where(arrays.reshape(real, (*real.shape, *[1] * (y.ndim - 2))), y, 0.0)
        return arrays.sum(y * y)

    if dtypes.is_inexact(x.dtype):
        found = np.asarray(grad(loss)(x))
        if not (np.isfinite(found).all() and (found[~np.asarray(real)] == 0).all()):
            raise AssertionError(f"{name}: padding on the {side} has a gradient, or is in one of real tokens.")
    if isinstance(layer, Module):
        for path, value in grad(lambda module: loss(x))(layer).items():
            if not np.isfinite(np.asarray(value)).all():
                raise AssertionError(f"{name}: padding on the {side} is in the gradient of {path}.")


def assert_rows_alone(layer: Layer, x: ArrayLike, tolerance: Tolerance = None, compiled: bool = False) -> None:
    """A row alone = the row in a batch.

    >>> import wonderland as wl
    >>> wl.nn.assert_rows_alone(wl.nn.TransformerBlock(8, 2), wl.random.normal((3, 5, 8)))
    """
    name, x = "assert_rows_alone", _sequences("assert_rows_alone", x)
    calls = _Calls(layer, compiled)
    whole = calls.whole(x)
    for i in range(x.shape[0]):
        _equal(name, calls.alone(x[i : i + 1])[0], whole[i], f"row {i} alone and in the batch", tolerance)


def assert_causal(layer: Layer, x: ArrayLike, compiled: bool = False) -> None:
    """Nothing that comes later changes a bit of a result, NaN included. Book, section 11.1.1; notes, 5.9.1.

    >>> import wonderland as wl
    >>> wl.nn.assert_causal(wl.nn.TransformerBlock(8, 2, causal=True), wl.random.normal((2, 5, 8)))

    Unlike `is_causal` it takes batches and tokens, and other numbers instead of derivatives.
    """
    name, x = "assert_causal", _sequences("assert_causal", x)
    calls = _Calls(layer, compiled)
    whole, values = calls.whole(x), np.asarray(x)
    for j in range(1, x.shape[1]):
        later = np.arange(x.shape[1]) >= j
        changed = values[::-1] + 1 if dtypes.is_inexact(x.dtype) else np.roll(values[::-1], 1, axis=1)
        other = np.where(later.reshape(-1, *[1] * (values.ndim - 2)), changed, values).astype(values.dtype)
        found = calls.whole(arrays.asarray(other))[:, :j]
        if not np.array_equal(found, whole[:, :j]):
            difference = _largest(found, whole[:, :j])
            raise AssertionError(f"{name}: results before token {j} change by {difference:.3g} with what comes later.")


def assert_order_free(layer: Layer, x: ArrayLike, tolerance: Tolerance = None, compiled: bool = False) -> None:
    """f(PX) = P f(X) for permutations of the tokens: a function of sets. Book, section 10.2.1.

    >>> import wonderland as wl
    >>> wl.nn.assert_order_free(wl.nn.TransformerBlock(8, 2), wl.random.normal((2, 5, 8)))
    """
    name, x = "assert_order_free", _sequences("assert_order_free", x)
    calls, time = _Calls(layer, compiled), x.shape[1]
    whole = calls.whole(x)
    orders = {"turned round": np.arange(time)[::-1], "shuffled": np.random.default_rng(time).permutation(time)}
    for what, order in orders.items():
        found = calls.whole(arrays.take(x, arrays.asarray(order.copy()), axis=1))
        _equal(name, whole[:, order], found, f"tokens {what} after and before", tolerance)


def assert_cache_reorders(
    layer: ReadsOn[C],
    x: ArrayLike,
    rows: Sequence[int] | None = None,
    tolerance: Tolerance = None,
    compiled: bool = False,
) -> None:
    """After `cache.reorder(rows)` row i goes on as row rows[i] would, as beam search needs it.

    >>> import wonderland as wl
    >>> layer = wl.nn.TransformerBlock(8, 2, causal=True)
    >>> wl.nn.assert_cache_reorders(layer, wl.random.normal((3, 5, 8)), rows=[2, 2, 0])

    By default the rows are those of x from the last to the second, and the last again.
    """
    name, x = "assert_cache_reorders", _sequences("assert_cache_reorders", x)
    count, time = x.shape[:2]
    chosen = [*range(count - 1, 0, -1), count - 1] if rows is None else list(rows)
    calls, half = _Reader(layer, compiled), time // 2
    _, cache = calls.extend(x[:, :half], layer.new_cache(count, time))
    cache = cache.reorder(chosen)
    mixed = np.concatenate([np.asarray(x)[chosen, :half], np.asarray(x)[: len(chosen), half:]], axis=1)
    found, _ = calls.extend(arrays.asarray(mixed[:, half:]), cache)
    wanted = calls.whole(arrays.asarray(mixed))[:, half:]
    _equal(name, wanted, np.asarray(found), f"the whole, and a cache with the rows {chosen}", tolerance)


def assert_threads_agree(layer: Layer, x: ArrayLike, most: int = 2) -> None:
    """1 thread = 2 threads, to the bit, in results and gradients of compiled code.

    >>> import wonderland as wl
    >>> wl.nn.assert_threads_agree(wl.nn.TransformerBlock(8, 2), wl.random.normal((2, 5, 8)))
    """
    name, x = "assert_threads_agree", _sequences("assert_threads_agree", x)
    before, results = get_threads(), []

    def loss(layer: Layer, x: Tensor) -> tuple[Tensor, Tensor]:
        y = _tensor(layer(x))
        return arrays.sum(y * y), y

    def result(layer: Layer, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        return {}, _tensor(layer(x))

    run: Callable[..., tuple[dict[str, Tensor], Tensor]] = result
    if isinstance(layer, Module):
        run = jit(grad(loss, has_aux=True))
    try:
        for threads in (1, as_int(name, "most", most, 1)):
            set_threads(threads)
            grads, y = run(layer, x)
            results.append({"the result": np.asarray(y), **{k: np.asarray(v) for k, v in grads.items()}})
    finally:
        set_threads(before)
    for what, one in results[0].items():
        if not np.array_equal(one, results[1][what], equal_nan=True):
            raise AssertionError(
                f"{name}: {what} differs by {_largest(one, results[1][what]):.3g} between 1 and {most} threads."
            )


def assert_sequence_layer(
    layer: ReadsOn[C], x: ArrayLike, tolerance: Tolerance = None, compiled: bool = False, threads: bool = True
) -> None:
    """Everything that a causal layer over sequences promises, one check after another.

    >>> import wonderland as wl
    >>> wl.nn.assert_sequence_layer(wl.nn.MultiHeadAttention(8, 2, causal=True), wl.random.normal((3, 6, 8)))
    """
    assert_reads_on(layer, x, tolerance=tolerance, compiled=compiled)
    assert_cache_reorders(layer, x, tolerance=tolerance, compiled=compiled)
    assert_padding_ignored(layer, x, tolerance=tolerance, compiled=compiled)
    assert_rows_alone(layer, x, tolerance, compiled)
    assert_causal(layer, x, compiled=compiled)
    if threads:
        assert_threads_agree(layer, x)


# --- calls, and what comes of them


class _Calls:
    """Calls of a layer with whole sequences, compiled or not; results are arrays."""

    def __init__(self, layer: Layer, compiled: bool) -> None:
        self.call = layer
        self._whole = _kept(layer, lambda layer, x, masks: layer(x, **masks), compiled)

    def whole(self, x: Tensor, **masks: Tensor) -> Array:
        return np.asarray(_tensor(self._whole(self.call, x, masks)))

    def alone(self, x: Tensor) -> Array:
        """Without compiling, which each shape would need again."""
        return np.asarray(_tensor(self.call(x)))


class _Reader(_Calls, Generic[C]):
    """The same, and calls that read on; caches are changed in place."""

    def __init__(self, layer: ReadsOn[C], compiled: bool) -> None:
        super().__init__(layer, compiled)
        self.layer = layer
        self._extend = _kept(layer, lambda layer, x, cache: layer.extend(x, cache)[0], compiled)
        self._extend_by = _kept(layer, lambda layer, x, cache, n: layer.extend(x, cache, n)[0], compiled)
        self._step = _kept(layer, lambda layer, x, cache: layer.step(x, cache)[0], compiled)

    def extend(self, x: Tensor, cache: C, lengths: Tensor | None = None) -> tuple[Tensor, C]:
        if lengths is not None:
            return self._extend_by(self.layer, x, cache, lengths), cache
        return self._extend(self.layer, x, cache), cache

    def step(self, x: Tensor, cache: C) -> tuple[Tensor, C]:
        return self._step(self.layer, x, cache), cache


def _tensor(y: object) -> Tensor:
    """The results of a call; layers with PyTorch's signature give a pair of results and states."""
    y = y[0] if isinstance(y, tuple) else y
    assert isinstance(y, Tensor)
    return y


def _kept(layer: object, f: Callable[..., T], compiled: bool) -> Callable[..., T]:
    return jit(f) if compiled and isinstance(layer, Module) else f


def _sequences(name: str, x: ArrayLike) -> Tensor:
    found = arrays.asarray(x)
    if found.ndim != (2 if dtypes.is_integer(found.dtype) else 3) or found.shape[1] < 2:
        raise ShapeError(
            f"{name}: sequences {found.dtype}{list(found.shape)}.",
            "(batch, time, features), or integers (batch, time), of 2 tokens or more",
        )
    return found


def _cut(x: Tensor, counts: Sequence[int]) -> list[Tensor]:
    ends = np.cumsum(counts)
    return [x[:, int(end) - n : int(end)] for end, n in zip(ends, counts, strict=True)]


def _spoiled(x: Array, real: Array) -> Tensor:
    """x with NaN where it is not real, or -1, which is no token."""
    nothing = np.nan if dtypes.is_inexact(arrays.asarray(x).dtype) else -1
    return arrays.asarray(np.where(real.reshape(*real.shape, *[1] * (x.ndim - 2)), x, nothing).astype(x.dtype))


def _equal(name: str, wanted: Array | None, found: Array, what: str, tolerance: Tolerance) -> None:
    """Within a part of the largest number, or of 1: by default what the dtype has, times the length of sums."""
    wanted = np.asarray(wanted)
    if wanted.shape != found.shape:
        raise AssertionError(f"{name}: {what} have shapes {wanted.shape} and {found.shape}.")
    if tolerance is None:
        tolerance = 1e-11 if wanted.dtype == np.float64 else 2e-5
    allowed = tolerance * max(1.0, float(np.abs(wanted).max(initial=0.0)))
    difference = _largest(wanted, found)
    if not difference <= allowed:
        worst = np.unravel_index(int(np.argmax(np.nan_to_num(np.abs(wanted - found), nan=np.inf))), wanted.shape)
        raise AssertionError(
            f"{name}: {what} differ by {difference:.3g}, more than {allowed:.3g}, first of all at "
            f"{tuple(int(i) for i in worst)} of {wanted.shape}."
        )


def _largest(a: Array, b: Array) -> float:
    """The largest difference; NaN if there is one."""
    return float(np.abs(a - b).max(initial=0.0))
