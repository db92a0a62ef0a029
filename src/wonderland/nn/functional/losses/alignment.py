"""The loss of transcriptions whose places in the input are not known: a sum over alignments. Book, section 11.2.4."""

from __future__ import annotations

import operator
from functools import reduce

from .... import arrays
from ....arrays.conversion import as_tensor
from ....core.arguments import as_int
from ....core.dtypes import float32, int64, is_half, is_integer
from ....core.errors import DTypeError, InputError, ShapeError
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....random.arguments import check, known
from ....transforms.control.loops import scan
from ..lookup import counted_from_zero
from .reduction import check_reduction, class_count, reduced, scores_of

__all__ = ["ctc_loss"]

# The logarithm of an impossible probability. It is finite, because differences of two infinities are NaN, which would
# reach the gradient; beside it the logarithm of anything that is possible is 0 or rounded away.
_IMPOSSIBLE = -1e30


def ctc_loss(
    log_probs: ArrayLike,
    targets: ArrayLike,
    input_lengths: ArrayLike,
    target_lengths: ArrayLike,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    r"""\(-\ln \sum_{a \to y} \prod_t p_t(a_t)\) over alignments a that collapse to the target y. Book, section 11.2.4.

    An alignment has a class for each of T frames. It collapses to a target by merging equal neighbours and leaving out
    the `blank` thereafter, so that "-aa-ab" is "aab".

    >>> import wonderland as wl
    >>> log_p = wl.log(wl.full((2, 1, 3), 1 / 3))  # (frames, batch, classes)
    >>> loss = wl.nn.functional.ctc_loss(log_p, wl.tensor([[1]]), [2], [1], reduction="none")
    >>> wl.exp(-loss)  # 11, -1 and 1- of nine
    tensor([0.333333])
    >>> print(wl.nn.functional.ctc_loss(log_p, wl.tensor([[1, 1]]), [2], [2]))  # needs three frames: 1-1
    tensor(inf)

    `log_probs` are log-probabilities (T, N, C), time first as in PyTorch, of which row n has `input_lengths[n]` frames;
    `targets` are classes (N, S), of which row n has `target_lengths[n]`, or all of them in one row (sum of lengths,).
    Without the batch, log_probs are (T, C), targets (S,) and lengths single numbers. What is beyond a length may be
    anything. The mean is that of losses divided by the lengths of their targets (at least 1).

    A target that no alignment can give has the loss inf, or 0 with `zero_infinity`, and the gradient 0. The gradient is
    the derivative with respect to the log-probabilities, minus the share of each class at each frame in the sum;
    PyTorch's is that with respect to logits whose log_softmax they are, and the two agree on the logits.
    """
    name = "ctc_loss"
    check_reduction(name, reduction)
    x = scores_of(name, log_probs)
    if is_half(x.dtype):  # sums over many frames need more digits
        wide = ctc_loss(
            arrays.astype(x, float32), targets, input_lengths, target_lengths, blank, reduction, zero_infinity
        )
        return arrays.astype(wide, x.dtype)
    labels = _integers(name, "targets", targets)
    frames, sizes = _integers(name, "input_lengths", input_lengths), _integers(name, "target_lengths", target_lengths)
    single = x.ndim == 2
    if single:
        x, labels = x[:, None], labels[None] if labels.ndim == 1 else labels
        frames, sizes = (arrays.reshape(n, (1,)) if n.size == 1 else n for n in (frames, sizes))
    if x.ndim != 3:
        raise ShapeError(f"{name}: log-probabilities of shape {x.shape}.", "(frames, batch, classes), time first")
    time, rows, classes = *x.shape[:2], class_count(name, x)
    blank = as_int(name, "blank", blank, 0)
    if blank >= classes:
        raise InputError(f"{name}: blank={blank} of {classes} classes.", f"a class from 0 to {classes - 1}")
    for what, lengths in (("input_lengths", frames), ("target_lengths", sizes)):
        if lengths.shape != (rows,):
            raise ShapeError(
                f"{name}: {what} of shape {lengths.shape} for log-probabilities of shape {x.shape}.",
                f"one length for each of {rows} rows; log-probabilities are (frames, batch, classes)",
            )
    check(name, "an input length", frames, lambda v: (v >= 0) & (v <= time), f"from 0 to the {time} frames there are")
    labels, real = _padded(name, labels, sizes, rows)  # (N, S)
    values, counted = known(labels), known(real)
    if values is not None and counted is not None:
        wanted = f"classes from 0 to {classes - 1} other than the blank {blank}; what is beyond target_lengths is free"
        check(name, "a target", values[counted], lambda v: (v >= 0) & (v < classes) & (v != blank), wanted)
    labels = arrays.where(real, counted_from_zero(labels, classes), blank)
    log_p = _summed(x, labels, frames, sizes, blank)
    # where no alignment is possible the loss is a constant and has no slope; NaN is not below anything and stays
    losses = arrays.where(log_p < 0.5 * _IMPOSSIBLE, 0.0 if zero_infinity else float("inf"), -log_p)
    if reduction == "mean":
        losses = losses / arrays.astype(arrays.maximum(sizes, 1), losses.dtype)
    return reduced(name, losses[0] if single else losses, reduction)


def _summed(x: Tensor, labels: Tensor, frames: Tensor, sizes: Tensor, blank: int) -> Tensor:
    """The logarithm of the probability of all alignments, (N,): the forward algorithm, one frame after another.

    An alignment walks along the target with a blank before, between and after its labels: 2 S + 1 places. In each frame
    it stays, goes to the next place, or past a blank that separates two different labels.
    """
    rows, width = labels.shape[0], 2 * labels.shape[1] + 1
    blanks = arrays.full(labels.shape, blank, dtype=labels.dtype)
    places = arrays.reshape(arrays.stack([blanks, labels], axis=2), (rows, width - 1))  # -a-b...
    places = arrays.concat([places, arrays.full((rows, 1), blank, dtype=labels.dtype)], axis=1)
    odd = arrays.arange(width) % 2 == 1  # the places of labels
    # the first label is reached from the first blank: nothing lies before that
    past = odd & arrays.concat([arrays.full((rows, 2), False), places[:, 2:] != places[:, :-2]], axis=1)[:, :width]
    x = arrays.where(x < _IMPOSSIBLE, _IMPOSSIBLE, x)
    scores = arrays.take_along_axis(x, arrays.broadcast_to(places, (x.shape[0], *places.shape)), axis=2)
    running = arrays.arange(x.shape[0])[:, None] < frames  # (T, N)
    # before the first frame it stands on the first blank, from where it may stay or go to the first label
    start = arrays.where(arrays.arange(width) == 0, 0.0, _IMPOSSIBLE)
    start = arrays.broadcast_to(arrays.astype(start, x.dtype), places.shape)
    edge = arrays.full((rows, 2), _IMPOSSIBLE, dtype=x.dtype)

    def frame(alpha: Tensor, now: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        score, goes_on = now
        one, two = (arrays.concat([edge[:, :k], alpha], axis=1)[:, :-k] for k in (1, 2))
        two = arrays.where(past, two, _IMPOSSIBLE)
        following = _log_sum(alpha, one, two) + score
        return arrays.where(goes_on[:, None], following, alpha), None

    alpha, _ = scan(frame, start, (scores, running))
    # it ends on the last label or on the blank after it; of an empty target there is only the blank
    ends = (2 * sizes)[:, None] - arrays.arange(2)
    last = arrays.take_along_axis(alpha, arrays.maximum(ends, 0), axis=1)
    last = arrays.where(ends >= 0, last, _IMPOSSIBLE)
    return _log_sum(last[:, 0], last[:, 1])


def _log_sum(*terms: Tensor) -> Tensor:
    """The logarithm of the sum of exponentials of finite terms."""
    top = arrays.stop_gradient(reduce(arrays.maximum, terms))
    return top + arrays.log(reduce(operator.add, [arrays.exp(term - top) for term in terms]))


def _integers(name: str, what: str, value: ArrayLike) -> Tensor:
    x = as_tensor(name, arrays.asarray(value))
    if x.size and not is_integer(x.dtype):  # an empty list has no dtype of its own
        raise DTypeError(f"{name}: {what} of {x.dtype}.", "integers")
    return arrays.astype(x, int64)


def _padded(name: str, labels: Tensor, sizes: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Targets as (N, S), and which of them are real; those that came in one row are taken apart."""
    lengths = known(sizes)
    if labels.ndim == 1:
        total = labels.shape[0]
        if lengths is not None and lengths.sum() != total:
            raise ShapeError(
                f"{name}: {total} targets in a row, and target_lengths that sum to {lengths.sum()}.",
                "targets (sum of lengths,), or padded ones (batch, longest)",
            )
        longest = total if lengths is None else int(lengths.max(initial=0))  # what jit cannot know has room for all
        starts = arrays.cumulative_sum(sizes) - sizes
        index = starts[:, None] + arrays.arange(longest)
        labels = arrays.take(labels, arrays.clip(index, 0, max(total - 1, 0))) if total else index
    if labels.ndim != 2 or labels.shape[0] != rows:
        raise ShapeError(
            f"{name}: targets of shape {labels.shape} for {rows} rows.", "(batch, longest) or (sum of lengths,)"
        )
    longest = labels.shape[1]
    check(
        name, "a target length", sizes, lambda v: (v >= 0) & (v <= longest), f"from 0 to the {longest} targets of a row"
    )
    return labels, arrays.arange(longest) < sizes[:, None]
