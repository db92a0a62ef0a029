"""Images as sequences of patches side by side, and back. Book, section 11.2.4, C.11.2."""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike

__all__ = ["patchify", "unpatchify"]


def patchify(images: ArrayLike, patch: int) -> Tensor:
    """The patches of p x p pixels as vectors, row by row: (..., h, w, c) to (..., (h/p)(w/p), p p c). Book, C.11.2.

    >>> import wonderland as wl
    >>> wl.nn.functional.patchify(wl.zeros((32, 64, 64, 3)), 8).shape
    (32, 64, 192)

    The numbers of a patch stand in the order (row, column, channel). `unpatchify` is the inverse.
    """
    x, p = as_tensor("patchify", arrays.asarray(images)), as_int("patchify", "patch", patch, 1)
    check_patches("patchify", x.shape, p)
    return arrays.rearrange(x, "... (h p) (w q) c -> ... (h w) (p q c)", p=p, q=p)


def unpatchify(patches: ArrayLike, height: int, width: int, patch: int) -> Tensor:
    """The image of patches: (..., (h/p)(w/p), p p c) to (..., h, w, c). Book, section 11.2.4.

    >>> import wonderland as wl
    >>> F, x = wl.nn.functional, wl.random.normal((2, 8, 12, 3))
    >>> bool((F.unpatchify(F.patchify(x, 4), 8, 12, 4) == x).all())
    True
    """
    name = "unpatchify"
    x, p = as_tensor(name, arrays.asarray(patches)), as_int(name, "patch", patch, 1)
    check_patches(name, (as_int(name, "height", height, 1), as_int(name, "width", width, 1), 1), p)
    rows, columns = height // p, width // p
    if x.ndim < 2 or x.shape[-2] != rows * columns or x.shape[-1] % (p * p):
        raise ShapeError(
            f"{name}: patches of shape {x.shape} for an image of {height} x {width} pixels.",
            f"(..., {rows * columns}, {p * p} channels)",
        )
    return arrays.rearrange(x, "... (h w) (p q c) -> ... (h p) (w q) c", h=rows, p=p, q=p)


def check_patches(name: str, shape: tuple[int, ...], patch: int) -> None:
    """Refuse images (..., h, w, c) that do not divide into patches."""
    if len(shape) < 3:
        raise ShapeError(f"{name}: an image of shape {shape}.", "(..., height, width, channels)")
    height, width = shape[-3:-1]
    if height % patch or width % patch or not height or not width:
        raise ShapeError(
            f"{name}: images of {height} x {width} pixels do not divide into patches of {patch} x {patch}.",
            "a patch that divides height and width, or wl.nn.functional.pad the images",
        )
