"""Transcriptions from models that were trained with `wl.nn.functional.ctc_loss`. Book, section 11.2.4.

Such a model gives every frame a distribution over classes and a blank. An alignment, one class for each frame, stands
for what is left when equal neighbours are merged and blanks left out; a transcription is as likely as all of its
alignments together.
"""

from __future__ import annotations

import numpy as np

from ..arrays.conversion import as_real
from ..core.arguments import as_int
from ..core.errors import InputError, NonFiniteError, ShapeError
from ..core.typing import Array, ArrayLike
from .beam import Hypothesis


def ctc_collapse(path: ArrayLike, blank: int = 0) -> Array:
    """What an alignment (T,) stands for: equal neighbours are merged, then blanks left out. Book, section 11.2.4.

    >>> ctc_collapse([0, 1, 1, 0, 1, 2])
    array([1, 1, 2])
    """
    classes = np.asarray(path)
    if classes.ndim != 1 or (classes.size and classes.dtype.kind not in "iu"):
        raise ShapeError(f"ctc_collapse: a path {classes.dtype}{list(classes.shape)}.", "one integer for each frame")
    first = np.append(True, classes[1:] != classes[:-1])[: len(classes)]
    return classes[first & (classes != blank)].astype(np.int64)


def ctc_greedy(log_probs: ArrayLike, input_lengths: ArrayLike | None = None, blank: int = 0) -> Array | list[Array]:
    """The collapse of the likeliest class of each frame. Book, section 11.2.4.

    >>> import wonderland as wl
    >>> log_p = wl.log(wl.tensor([[0.6, 0.4], [0.6, 0.4]]))  # frames of a blank and one class
    >>> wl.generation.ctc_greedy(log_p)
    array([], dtype=int64)

    The arguments are those of `ctc_loss`: log-probabilities or logits (T, N, C), which give a list of N arrays, or
    (T, C), which give one array; without `input_lengths` all frames count. The likeliest alignment need not belong to
    the likeliest transcription (here the class has 0.64): `ctc_beam_search` adds alignments up.
    """
    rows, single = _rows("ctc_greedy", log_probs, input_lengths, blank)
    found = [ctc_collapse(row.argmax(axis=-1), blank) for row in rows]
    return found[0] if single else found


def ctc_beam_search(
    log_probs: ArrayLike, input_lengths: ArrayLike | None = None, beams: int = 16, blank: int = 0
) -> list[Hypothesis] | list[list[Hypothesis]]:
    r"""The likeliest transcriptions, found by keeping the `beams` likeliest beginnings. Book, section 11.2.4.

    >>> import wonderland as wl
    >>> log_p = wl.log(wl.tensor([[0.6, 0.4], [0.6, 0.4]]))  # frames of a blank and one class
    >>> best = wl.generation.ctc_beam_search(log_p)[0]
    >>> best.tokens, round(best.log_prob, 4) == round(float(wl.log(wl.tensor(0.64))), 4)
    (array([1]), True)

    After every frame each beginning has the probability of all of its alignments so far, those that end in a blank
    apart from the others: after a blank a label may come again, else it is merged. Alignments of beginnings that were
    given up are lost, so `log_prob` is at most that of `ctc_loss`, and equal to it if nothing was given up.

    `log_probs` are those of `ctc_loss`, (T, N, C) or (T, C); the result is a list of `Hypothesis(tokens, log_prob,
    score)` with the best first, for a batch a list of such lists. The score is the log-probability.
    """
    width = as_int("ctc_beam_search", "beams", beams, 1)
    rows, single = _rows("ctc_beam_search", log_probs, input_lengths, blank)
    found = [_searched(row.astype(np.float64), width, blank) for row in rows]
    return found[0] if single else found


def _searched(log_p: Array, width: int, blank: int) -> list[Hypothesis]:
    """The search of one row (T, C)."""
    prefixes: list[tuple[int, ...]] = [()]
    total = ends_blank = np.zeros(1)
    ends_label = np.full(1, -np.inf)
    for frame in log_p:
        last = np.array([prefix[-1] if prefix else blank for prefix in prefixes])
        # the prefix stays: a blank comes, or its last label once more (the empty one has none)
        stays_blank, stays_label = total + frame[blank], ends_label + frame[last]
        # or it grows: by its last label only after a blank
        grown = total[:, None] + frame  # (beams, C)
        grown[np.arange(len(last)), last] = ends_blank + frame[last]
        grown[:, blank] = -np.inf
        where = {prefix: place for place, prefix in enumerate(prefixes)}
        for place, prefix in enumerate(prefixes):
            parent = where.get(prefix[:-1]) if prefix else None
            if parent is not None:  # two ways to the same prefix
                stays_label[place] = np.logaddexp(stays_label[place], grown[parent, prefix[-1]])
                grown[parent, prefix[-1]] = -np.inf
        # all candidates: those that stay, then those that grow
        to_blank = np.append(stays_blank, np.full(grown.size, -np.inf))
        to_label = np.append(stays_label, grown)
        total = np.logaddexp(to_blank, to_label)
        kept = np.argsort(-total, kind="stable")[:width]
        kept = kept[total[kept] > -np.inf]
        count, classes = grown.shape
        prefixes = [
            prefixes[k] if k < count else (*prefixes[(k - count) // classes], (k - count) % classes)
            for k in kept.tolist()
        ]
        total, ends_blank, ends_label = total[kept], to_blank[kept], to_label[kept]
    values = total.tolist()
    order = sorted(range(len(values)), key=lambda place: -values[place])
    return [Hypothesis(np.array(prefixes[k], np.int64), values[k], values[k]) for k in order]


def _rows(name: str, log_probs: ArrayLike, input_lengths: ArrayLike | None, blank: int) -> tuple[list[Array], bool]:
    """The frames (T, C) of each row that count, and whether there was no batch."""
    x = as_real(name, log_probs).numpy()
    single = x.ndim == 2
    x = x[:, None] if single else x
    if x.ndim != 3 or not x.shape[-1]:
        raise ShapeError(f"{name}: log-probabilities of shape {x.shape}.", "(frames, batch, classes), time first")
    if not 0 <= as_int(name, "blank", blank) < x.shape[-1]:
        raise InputError(f"{name}: blank={blank} of {x.shape[-1]} classes.", f"a class from 0 to {x.shape[-1] - 1}")
    lengths = np.full(x.shape[1], len(x)) if input_lengths is None else np.atleast_1d(np.asarray(input_lengths))
    if lengths.shape != x.shape[1:2] or lengths.dtype.kind not in "iu":
        raise ShapeError(
            f"{name}: input_lengths {lengths.dtype}{list(lengths.shape)} for log-probabilities of shape {x.shape}.",
            f"an integer for each of {x.shape[1]} rows",
        )
    if lengths.size and not (lengths.min() >= 0 and lengths.max() <= len(x)):
        raise InputError(
            f"{name}: input_lengths from {lengths.min()} to {lengths.max()}.", f"from 0 to {len(x)} frames"
        )
    rows = [x[:length, n] for n, length in enumerate(lengths.tolist())]
    for n, row in enumerate(rows):
        if row.size and not np.isfinite(row.max(axis=-1)).all():  # the maximum of a frame with NaN is NaN
            raise NonFiniteError(
                f"{name}: a frame of row {n} has NaN, +inf, or -inf for every class.",
                "`with wl.debug.nans():` finds where it comes from",
            )
    return rows, single
