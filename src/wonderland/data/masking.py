"""Self-supervision by hiding: part of an example is masked, and the model guesses it from the rest.

What is hidden is drawn anew in every epoch. Targets count where something was hidden and nowhere else. Book, section
3.1.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import asarray, astype, maximum, where
from ..core.arguments import as_int, as_number
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike, Number
from .dataset import Dataset, as_column

IGNORED = -100  # the target that cross_entropy ignores by default


class MaskingTask(Dataset[tuple[Array, Any]]):
    """The base of masking tasks: example i is `(visible, (target, mask))`, all of one shape.

    The mask is True where something was hidden. A subclass defines `hidden(x, rng)`, the mask. `p` is the share of the
    places to hide; at least one place of each example is hidden.
    """

    random = True

    def __init__(self, data: ArrayLike, p: float, fill: Number = 0) -> None:
        name = type(self).__name__
        self.data = data if isinstance(data, (list, tuple)) else as_column(data)
        self.p = float(as_number(name, "p", p))
        self.fill = fill
        if not 0 < self.p <= 1:
            raise InputError(f"{name}: p={p} is no share of places to hide.", "a number above 0, up to 1")
        if not len(self.data):
            raise InputError(f"{name}: there is no data.", "one example or more")

    def __len__(self) -> int:
        return len(self.data)

    def hidden(self, x: Array, rng: np.random.Generator) -> Array:
        """The mask of an example: True where it is hidden, of the same shape."""
        raise NotImplementedError(f"{type(self).__name__}: def hidden(self, x, rng)")

    def draw(self, index: int, rng: np.random.Generator) -> Any:
        x = as_column(self.data[index])
        mask = self.hidden(x, rng)
        return np.where(mask, np.asarray(self.fill, x.dtype), x), (x, mask)

    def chosen(self, candidates: Array, rng: np.random.Generator) -> Array:
        """The share p of some places, at least one if there is any."""
        count = min(max(1, round(self.p * len(candidates))), len(candidates))
        return rng.choice(candidates, count, replace=False)


class MaskedTokens(MaskingTask):
    """The cloze: hidden tokens are replaced by `mask_id`; example i is `(visible, targets)`.

    Targets are -100 where nothing was hidden, which `nn.functional.cross_entropy` ignores. Of the hidden tokens the
    share `random_share` becomes a random token instead of the mask, and `keep_share` stays (BERT has 0.1 and 0.1).
    Tokens among `special` are never hidden.

    >>> visible, targets = MaskedTokens([[5, 6, 7, 8]], mask_id=0, p=0.5)[0]
    >>> int((visible == 0).sum()), np.where(visible == 0, targets, visible)
    (2, array([5, 6, 7, 8]))
    """

    def __init__(
        self,
        sequences: ArrayLike,
        mask_id: int,
        p: float = 0.15,
        *,
        vocabulary_size: int | None = None,
        random_share: float = 0.0,
        keep_share: float = 0.0,
        special: Sequence[int] = (),
    ) -> None:
        super().__init__(sequences, p, as_int("MaskedTokens", "mask_id", mask_id))
        if min(random_share, keep_share) < 0 or random_share + keep_share > 1:
            raise InputError(
                f"MaskedTokens: random_share={random_share} and keep_share={keep_share} are no shares.",
                "numbers from 0 with a sum up to 1",
            )
        if random_share and vocabulary_size is None:
            raise InputError("MaskedTokens: random_share needs to know the tokens.", "vocabulary_size=...")
        self.vocabulary_size, self.random_share, self.keep_share = vocabulary_size, random_share, keep_share
        self.special = np.asarray(special, np.int64)

    def hidden(self, x: Array, rng: np.random.Generator) -> Array:
        mask = np.zeros(x.shape, bool)
        candidates = np.flatnonzero(~np.isin(x, self.special))
        if len(candidates):
            mask.flat[self.chosen(candidates, rng)] = True
        return mask

    def draw(self, index: int, rng: np.random.Generator) -> tuple[Array, Array]:
        x = as_column(self.data[index])
        if x.dtype.kind not in "iu":
            raise InputError(f"MaskedTokens: the tokens of example {index} are {x.dtype}.", "integers")
        mask = self.hidden(x, rng)
        targets = np.where(mask, x, IGNORED).astype(np.int64)
        replaced = np.full(x.shape, self.fill, x.dtype)
        fate = rng.random(x.shape)
        if self.vocabulary_size is not None:
            drawn = rng.integers(self.vocabulary_size, size=x.shape)
            replaced = np.where(fate < self.random_share, drawn, replaced).astype(x.dtype)
        kept = fate >= 1 - self.keep_share
        return np.where(mask & ~kept, replaced, x), targets


class MaskedPatches(MaskingTask):
    """Images (height, width, channels) with whole patches hidden, as for masked autoencoders.

    >>> visible, (target, mask) = MaskedPatches(np.ones((1, 4, 4, 1)), patch=2, p=0.75)[0]
    >>> float(visible[..., 0].sum()), float(mask.mean())
    (4.0, 0.75)
    """

    def __init__(self, images: ArrayLike, patch: int, p: float = 0.75, fill: Number = 0) -> None:
        super().__init__(images, p, fill)
        self.patch = as_int("MaskedPatches", "patch", patch, least=1)

    def hidden(self, x: Array, rng: np.random.Generator) -> Array:
        if x.ndim != 3 or x.shape[0] % self.patch or x.shape[1] % self.patch:
            raise ShapeError(
                f"MaskedPatches: an image of shape {x.shape} has no patches of {self.patch} by {self.patch}.",
                "(height, width, channels) with sizes that the patch divides",
            )
        rows, columns = x.shape[0] // self.patch, x.shape[1] // self.patch
        grid = np.zeros((rows, columns), bool)
        grid.flat[self.chosen(np.arange(grid.size), rng)] = True
        whole = grid.repeat(self.patch, axis=0).repeat(self.patch, axis=1)
        return np.broadcast_to(whole[:, :, None], x.shape)


class MaskedCells(MaskingTask):
    """Rows of a table with some cells hidden. A cell that is missing (NaN) is shown as `fill` and never asked for.

    >>> visible, (target, mask) = MaskedCells([[1.0, 2.0, float("nan"), 4.0]], p=0.3)[0]
    >>> int(mask.sum()), bool(mask[2]), float(visible[2])
    (1, False, 0.0)
    """

    def __init__(self, table: ArrayLike, p: float = 0.15, fill: Number = 0) -> None:
        super().__init__(table, p, fill)

    def hidden(self, x: Array, rng: np.random.Generator) -> Array:
        mask = np.zeros(x.shape, bool)
        known = np.flatnonzero(~np.isnan(x)) if x.dtype.kind in "fc" else np.arange(x.size)
        if len(known):
            mask.flat[self.chosen(known, rng)] = True
        return mask

    def draw(self, index: int, rng: np.random.Generator) -> tuple[Array, tuple[Array, Array]]:
        visible, (target, mask) = super().draw(index, rng)
        if visible.dtype.kind in "fc":
            visible = np.where(np.isnan(visible), np.asarray(self.fill, visible.dtype), visible)
        return visible, (target, mask)


class MaskedNodes(MaskingTask):
    """Graphs or sets (nodes, features) with all features of some nodes hidden.

    >>> visible, (target, mask) = MaskedNodes(np.ones((1, 4, 3)), p=0.25)[0]
    >>> mask.sum(axis=1).tolist().count(3), int(mask.sum())
    (1, 3)
    """

    def __init__(self, graphs: ArrayLike, p: float = 0.15, fill: Number = 0) -> None:
        super().__init__(graphs, p, fill)

    def hidden(self, x: Array, rng: np.random.Generator) -> Array:
        mask = np.zeros(x.shape, bool)
        mask[self.chosen(np.arange(len(x)), rng)] = True
        return mask


def masked_loss(loss: Callable[..., Tensor]) -> Callable[[Tensor, tuple[ArrayLike, ArrayLike]], Tensor]:
    r"""A loss for targets of which some do not count: \(\sum_i m_i \ell(\hat y_i, y_i) / \sum_i m_i\).

    `loss` has elementwise values with `reduction="none"`. Targets where the mask is False may be anything, even NaN.

    >>> import wonderland as wl
    >>> reconstruction = masked_loss(wl.nn.functional.mse_loss)
    >>> target, mask = wl.tensor([1.0, float("nan"), 3.0]), wl.tensor([True, False, True])
    >>> reconstruction(wl.tensor([2.0, 7.0, 3.0]), (target, mask))
    tensor(0.5)

    The way to learn from data of which only a part is labelled. Book, section 3.1.1.
    """

    def masked(predictions: Tensor, targets: tuple[ArrayLike, ArrayLike]) -> Tensor:
        target, mask = asarray(targets[0]), asarray(targets[1])
        if mask.shape != target.shape:
            raise ShapeError(
                f"masked_loss: the mask has shape {mask.shape}, the targets {target.shape}.", "a mask for every target"
            )
        # zeros before the loss, too: 0 times the derivative at NaN would still be NaN
        values = loss(predictions, where(mask, target, astype(asarray(0), target.dtype)), reduction="none")
        if values.shape != mask.shape:
            raise ShapeError(
                f"masked_loss: the loss has shape {values.shape}, the mask {mask.shape}.", "one per target"
            )
        total = where(mask, values, astype(asarray(0), values.dtype)).sum()
        return total / maximum(astype(mask, values.dtype).sum(), 1)

    return masked
