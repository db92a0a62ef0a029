"""Sequences of different lengths as one array, and the masks that tell elements from padding. Book, section 8.2.1.

`PadCollate` does this to the examples of a batch in a loader; these are the same by hand.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .. import arrays
from ..arrays.conversion import as_tensor, promote
from ..core.arguments import as_int, as_list
from ..core.dtypes import is_integer
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..random.arguments import check, known

LENGTHS = 1024  # different ones that buckets are chosen among


def pad_sequence(sequences: Iterable[ArrayLike], batch_first: bool = False, padding_value: float = 0.0) -> Tensor:
    r"""Tensors (time, ...) of different lengths, stacked and padded at their ends to the longest. Book, box C.8.1.

    >>> import wonderland as wl
    >>> X1, X2, X3 = wl.ones((3, 8)), wl.ones((5, 8)), wl.ones((2, 8))
    >>> wl.data.pad_sequence([X1, X2, X3], batch_first=True).shape
    (3, 5, 8)

    The result is (time, batch, ...) as in PyTorch, or with `batch_first` (batch, time, ...), which the layers here
    take. Gradients flow to each sequence.
    """
    found = [as_tensor("pad_sequence", arrays.asarray(x)) for x in as_list("pad_sequence", "sequences", sequences)]
    if not found:
        raise InputError("pad_sequence: there are no sequences.", "one or more")
    if any(x.ndim == 0 for x in found) or len({x.shape[1:] for x in found}) > 1:
        raise ShapeError(
            f"pad_sequence: shapes {[x.shape for x in found[:5]]}.", "sequences (time, ...) that differ in time only"
        )
    found = promote("pad_sequence", *found)
    longest = max(x.shape[0] for x in found)
    padded = [
        arrays.pad(x, ((0, longest - x.shape[0]), *((0, 0),) * (x.ndim - 1)), constant_values=padding_value)
        for x in found
    ]
    return arrays.stack(padded, axis=0 if batch_first else 1)


def unpad_sequence(padded: ArrayLike, lengths: ArrayLike, batch_first: bool = False) -> list[Tensor]:
    """The sequences without their padding, the inverse of `pad_sequence`.

    >>> import wonderland as wl
    >>> [x.shape for x in wl.data.unpad_sequence(wl.ones((2, 5, 8)), [3, 5], batch_first=True)]
    [(3, 8), (5, 8)]
    """
    x = as_tensor("unpad_sequence", padded)
    if x.ndim < 2:
        raise ShapeError(f"unpad_sequence: a batch of shape {x.shape}.", "a batch of sequences")
    x = x if batch_first else arrays.swapaxes(x, 0, 1)
    sizes = [as_int("unpad_sequence", "a length", n, least=0) for n in np.asarray(lengths).tolist()]
    if len(sizes) != x.shape[0] or max(sizes, default=0) > x.shape[1]:
        raise ShapeError(
            f"unpad_sequence: lengths {sizes[:5]} for a batch of {x.shape[0]} sequences of {x.shape[1]}.",
            "one length per sequence, up to the longest",
        )
    return [row[:n] for row, n in zip(x, sizes, strict=True)]


def lengths_to_mask(lengths: ArrayLike, max_len: int | None = None) -> Tensor:
    r"""\(M_{ij} = 1\) for \(j \le t_i\), else 0, as booleans: (batch,) to (batch, max_len). Book, section 8.2.1.

    >>> import wonderland as wl
    >>> wl.data.lengths_to_mask([5, 3]).astype(wl.int64)
    tensor([[1, 1, 1, 1, 1],
            [1, 1, 1, 0, 0]])

    `max_len` is the largest of the lengths by default; under `jit` it has to be given.
    """
    lengths = as_tensor("lengths_to_mask", arrays.asarray(lengths))
    if not is_integer(lengths.dtype):
        raise DTypeError(f"lengths_to_mask: lengths of dtype {lengths.dtype}.", "integers")
    if max_len is None:
        values = known(lengths)
        if values is None:
            raise InputError("lengths_to_mask: the longest is not known under jit.", "max_len=")
        max_len = int(values.max(initial=0))
    max_len = as_int("lengths_to_mask", "max_len", max_len, least=0)
    check("lengths_to_mask", "a length", lengths, lambda v: (v >= 0) & (v <= max_len), f"from 0 to max_len={max_len}")
    return arrays.arange(max_len) < lengths[..., None]


def bucket_lengths(lengths: ArrayLike, most: int = 4) -> tuple[int, ...]:
    r"""At most so many lengths \(b_1 < b_2 < \dots\) for sequences to be padded to, so that the least is padded.

    >>> import wonderland as wl
    >>> lengths = [3, 4, 4, 5, 30, 31, 32]
    >>> wl.data.bucket_lengths(lengths, 2)
    (5, 32)

    Each sequence is padded to the next \(b \ge t_i\), and \(\sum_i (b(t_i) - t_i)\) is as small as it can be (of more
    than 1,024 different lengths, multiples of a common step are looked at). A compiled function meets these lengths
    alone where batches are made of sequences of similar length, and padded to the next one:

    >>> sampler = wl.data.BucketBatchSampler(lengths, 2)
    >>> pad = wl.data.PadCollate(to=(5, 32))
    >>> data = [np.ones(n) for n in lengths]
    >>> loader = wl.data.DataLoader(data, batch_sampler=sampler, collate_fn=pad)
    >>> {batch.values.shape[1] for batch in loader} <= {5, 32}
    True

    What is real is told by `batch.mask`; see "Sequences of many lengths" in docs/compiler.md. Book, section 8.2.1.
    """
    given = np.asarray(lengths)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu" or given.min() < 1:
        raise InputError(f"bucket_lengths: lengths of shape {given.shape}.", "one integer from 1 on per sequence")
    most = as_int("bucket_lengths", "most", most, least=1)
    step = -(-int(given.max()) // LENGTHS)
    ends, counts = np.unique(-(-given.astype(np.int64) // step) * step if step > 1 else given, return_counts=True)
    # waste[j]: the least padding of the first j different lengths, of which the last is one to pad to
    before = np.concatenate([[0], np.cumsum(counts)])
    terms = np.concatenate([[0], np.cumsum(counts * ends)])
    waste = np.full(len(ends) + 1, np.inf)
    waste[0] = 0
    cuts = []
    for _ in range(min(most, len(ends))):
        each = waste[None, :-1] + ends[:, None] * (before[1:, None] - before[None, :-1])
        each = each - (terms[1:, None] - terms[None, :-1])
        each[np.triu_indices(len(ends), 1)] = np.inf  # a bucket begins where another one has ended
        cuts.append(np.argmin(each, axis=1))
        waste = np.concatenate([[np.inf], each.min(axis=1)])
    found, j = [], len(ends)
    for cut in reversed(cuts):
        found.append(int(ends[j - 1]))
        j = int(cut[j - 1])
    return tuple(sorted(found))
