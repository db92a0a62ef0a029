"""What pre-training hides: tokens of a text, spans of latent frames. Book, section 11.2.4.

The same key hides the same places, compiled or not. `wl.data.MaskedTokens` does this to the examples of a dataset
instead, with exactly the share p of each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import arrays
from ...arrays.conversion import as_shape, as_tensor
from ...core.arguments import as_int, as_number
from ...core.dtypes import int64, is_integer
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike, ShapeLike
from ...random.arguments import check
from ...random.continuous import uniform
from ...random.discrete import randint
from ...random.keys import split
from ...random.streams import take_key

__all__ = ["mask_spans", "mask_tokens"]


def mask_tokens(
    ids: ArrayLike,
    p: float,
    mask_id: int,
    vocabulary_size: int | None = None,
    *,
    random_share: float = 0.1,
    keep_share: float = 0.1,
    special: Sequence[int] = (),
    token_mask: ArrayLike | None = None,
    ignore_index: int = -100,
    key: KeyLike = None,
) -> tuple[Tensor, Tensor]:
    """Inputs and targets of masked language modelling, as in BERT, both of the shape of `ids`. Book, section 11.2.4.

    >>> import wonderland as wl
    >>> ids = wl.arange(5, 25)
    >>> inputs, targets = wl.nn.functional.mask_tokens(ids, 0.15, mask_id=4, vocabulary_size=30, key=wl.random.key(0))
    >>> chosen = targets != -100
    >>> bool((targets[chosen] == ids[chosen]).all()), bool((inputs[~chosen] == ids[~chosen]).all())
    (True, True)

    Each token is chosen with probability `p` (0.15 in BERT). Of the chosen ones the share `random_share` becomes any of
    `vocabulary_size` tokens, `keep_share` stays as it is, and the rest, 80 % by default, becomes `mask_id`, so that the
    model cannot trust the tokens that it sees. The target is the token where it was chosen and `ignore_index`
    elsewhere, which `cross_entropy` leaves out: the loss counts chosen places only. Tokens among `special`, and those
    where `token_mask` is false (padding), are never chosen.
    """
    name = "mask_tokens"
    x = as_tensor(name, arrays.asarray(ids))
    if not is_integer(x.dtype):
        raise DTypeError(f"{name}: tokens of {x.dtype}.", "integers")
    p = _probability(name, p)
    mask_id = as_int(name, "mask_id", mask_id, 0)
    random_share, keep_share = (float(as_number(name, "a share", share)) for share in (random_share, keep_share))
    if min(random_share, keep_share) < 0 or random_share + keep_share > 1:
        raise InputError(
            f"{name}: random_share={random_share} and keep_share={keep_share}.", "numbers from 0 with a sum up to 1"
        )
    if random_share and vocabulary_size is None:
        raise InputError(f"{name}: random tokens are drawn from how many?", "vocabulary_size=..., or random_share=0")
    candidates = arrays.full(x.shape, True)
    for token in special:
        candidates = candidates & (x != as_int(name, "a special token", token))
    if token_mask is not None:
        real = as_tensor(name, arrays.asarray(token_mask))
        if real.shape != x.shape:
            raise ShapeError(f"{name}: token_mask of shape {real.shape} for ids of shape {x.shape}.", "the same shape")
        candidates = candidates & (real != 0)
    choice, fate, drawn = split(take_key(name, key), 3)
    chosen = candidates & (uniform(x.shape, key=choice) < p)
    share = uniform(x.shape, key=fate)
    hidden = arrays.full(x.shape, mask_id, dtype=x.dtype)
    if vocabulary_size is not None:
        size = as_int(name, "vocabulary_size", vocabulary_size, 1)
        hidden = arrays.where(share < random_share, randint(x.shape, size, key=drawn, dtype=x.dtype), hidden)
    inputs = arrays.where(chosen & (share < 1.0 - keep_share), hidden, x)
    return inputs, arrays.where(chosen, arrays.astype(x, int64), ignore_index)


def mask_spans(
    shape: ShapeLike, p: float = 0.065, length: int = 10, *, lengths: ArrayLike | None = None, key: KeyLike = None
) -> Tensor:
    """Which frames (batch, time) to hide, in spans, as booleans: true where hidden. Book, section 11.2.4 (wav2vec).

    >>> import wonderland as wl
    >>> hidden = wl.nn.functional.mask_spans((1, 12), p=0.0, length=3, key=wl.random.key(0))
    >>> int(hidden.sum())  # one span at least
    3

    Every frame begins a span of `length` frames with probability `p`; spans may overlap, so with the defaults about
    half of a long sequence is hidden. Where none begins one does all the same. Spans do not reach over the end of a
    row, which is at `lengths` (batch,) if rows are padded; a row shorter than a span is hidden whole, an empty one has
    nothing to hide. Hidden frames become a learned vector before the encoder, and the loss counts them alone:
    `wl.where(hidden[..., None], vector, frames)`, `wl.data.masked_loss`.
    """
    name = "mask_spans"
    sizes = as_shape(name, shape)
    if not sizes or not sizes[-1]:
        raise ShapeError(f"{name}: a mask of shape {sizes}.", "(batch, time), one frame or more")
    p = _probability(name, p)
    length = as_int(name, "length", length, 1)
    time = arrays.arange(sizes[-1])
    ends = as_tensor(name, arrays.full(sizes[:-1], sizes[-1]) if lengths is None else arrays.asarray(lengths))
    if ends.shape != sizes[:-1] or not is_integer(ends.dtype):
        raise ShapeError(
            f"{name}: lengths {ends.dtype}{list(ends.shape)} for a mask of shape {sizes}.", "an integer for each row"
        )
    check(name, "a length", ends, lambda v: (v >= 0) & (v <= sizes[-1]), f"from 0 to {sizes[-1]} frames")
    real = time < ends[..., None]
    fits = real & (time <= arrays.maximum(ends - length, 0)[..., None])  # a span that begins here ends in time
    noise = arrays.where(fits, uniform(sizes, key=take_key(name, key)), 2.0)
    begins = fits & ((noise < p) | (noise == arrays.min(noise, axis=-1, keepdims=True)))
    count = arrays.cumulative_sum(arrays.astype(begins, int64), axis=-1)
    # a frame is hidden if more spans have begun up to it than up to `length` frames before
    nothing = arrays.zeros((*sizes[:-1], min(length, sizes[-1])), dtype=int64)
    before = arrays.concat([nothing, count], axis=-1)[..., : sizes[-1]]
    return real & (count > before)


def _probability(name: str, p: float) -> float:
    if not 0 <= as_number(name, "p", p) <= 1:
        raise InputError(f"{name}: p={p}.", "a probability from 0 to 1")
    return float(p)
