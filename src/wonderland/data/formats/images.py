"""Images from files to arrays of one shape: what a set of them should look like, and each read as it."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...core.errors import FileError, InputError, ShapeError, WonderlandError
from ...core.room import check_room
from ...core.typing import Foreign
from ...storage.bounds import unpacked_limit
from ..extras import need
from ..transforms.resizing import Resize
from .files import damaged, read_bytes
from .media_files import read_all
from .numpy_files import read_npy

MODES = {"L": 1, "RGB": 3}
LARGEST = 256  # pixels a side up to which images that are all equal are taken as they are
COMMON = 64  # pixels a side, about, of images that are made equal
LOOKED_AT = 64  # images whose pixels say whether a set is grey
_GREY = ("1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F")  # Pillow's modes without colours
_TURNED = (5, 6, 7, 8)  # orientations in which a camera was held upright
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


@dataclass(frozen=True)
class ImageForm:
    """What every image of a set is made to be: (height, width, channels) of a type.

    >>> ImageForm((8, 12), 3).to_dict()
    {'kind': 'image', 'size': [8, 12], 'channels': 3, 'dtype': 'uint8'}
    """

    size: tuple[int, int]
    channels: int
    dtype: str = "uint8"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one image."""
        return (*self.size, self.channels)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"kind": "image", "size": list(self.size), "channels": self.channels, "dtype": self.dtype}

    @classmethod
    def of_dict(cls, data: Mapping[str, object]) -> ImageForm:
        """The form that a run kept."""
        size, channels, dtype = data.get("size"), data.get("channels"), data.get("dtype")
        sound = isinstance(size, list) and len(size) == 2 and all(type(n) is int and 0 < n < 2**16 for n in size)
        if not sound or type(channels) is not int or not 0 < channels < 2**16 or not _is_dtype(dtype):
            raise FileError(f"the form of the images is damaged: {dict(data)}.", "a file that `wonderland train` wrote")
        return cls((size[0], size[1]), channels, str(dtype))  # type: ignore[index]

    def __str__(self) -> str:
        colour = {1: "grey", 3: "in colour"}.get(self.channels, f"with {self.channels} channels")
        return f"{self.size[0]} x {self.size[1]} pixels, {colour}"


def _is_dtype(dtype: object) -> bool:
    try:
        return isinstance(dtype, str) and np.dtype(dtype).kind in "iubf"
    except TypeError:
        return False


class Look(NamedTuple):
    """What the header of an image says."""

    size: tuple[int, int]  # (height, width)
    channels: int
    dtype: str


def look_at(path: Path) -> Look:
    """The size, the channels and the type of an image, from its first bytes."""
    if path.suffix.lower() == ".npy":
        image = _array(path)
        return Look(image.shape[:2], image.shape[2], str(image.dtype))
    pillow = need(f"read: {str(path)!r}", "PIL.Image", "images")
    try:
        with pillow.open(path) as picture:
            width, height = picture.size
            if picture.format in ("JPEG", "MPO", "TIFF", "WEBP") and picture.getexif().get(274) in _TURNED:
                width, height = height, width
            return Look((height, width), 1 if picture.mode in _GREY else 3, "uint8")
    except Exception as error:  # a damaged image takes the decoder to lines of its own that raise anything
        raise damaged("read", path, f"a {path.suffix} image", _reason(error)) from None


def read_image(path: Path, form: ImageForm | None = None, mode: str = "RGB") -> np.ndarray:
    """An image (h, w, c): as it is in one of Pillow's modes "RGB" and "L", or as a form says.

    Images of another size are stretched. Those that a camera took upright stand upright, transparent pixels are white,
    and 16 bits of grey become 8.
    """
    if path.suffix.lower() == ".npy":
        image = _array(path)
        return image if form is None else _shaped(str(path), image, form)
    if form is not None and (form.channels not in (1, 3) or form.dtype != "uint8"):
        raise InputError(
            f"read: {str(path)!r} has pixels of 8 bits, others are {form.dtype} with {form.channels} channels.",
            "images of one kind",
        )
    mode = mode if form is None else {1: "L", 3: "RGB"}[form.channels]
    pillow = need(f"read: {str(path)!r}", "PIL.Image", "images")
    data = read_bytes("read", path, unpack=False)
    limit = unpacked_limit(len(data))
    try:
        with pillow.open(io.BytesIO(data)) as picture:
            width, height = picture.size
            if 3 * width * height > limit:
                raise ValueError(f"{width} x {height} pixels in {len(data):,} bytes")
            picture.verify()  # the checksums of a PNG, which decoding alone does not look at
        with pillow.open(io.BytesIO(data)) as picture:  # one that was verified cannot be decoded
            if form is not None and picture.format == "JPEG":
                side = 2 * max(form.size)
                picture.draft(mode, (side, side))  # a large photograph is decoded at a half, a quarter or an eighth
            pixels = _decoded(pillow, picture, mode, form)
    except Exception as error:  # as above
        raise damaged("read", path, f"a whole {path.suffix} image within {limit:,} bytes", _reason(error)) from None
    return pixels[:, :, None] if mode == "L" else pixels


def _reason(error: Exception) -> Exception | None:
    """What a decoder said, without the address of the bytes that it names."""
    return ValueError("it is no image that Pillow knows") if "cannot identify" in str(error) else error


def _decoded(pillow: Foreign, picture: Foreign, mode: str, form: ImageForm | None) -> np.ndarray:
    turned = need("read", "PIL.ImageOps", "images").exif_transpose(picture)
    if turned.mode.startswith("I"):  # 16 bits, which Pillow would cut off at 255
        turned = pillow.fromarray((np.clip(np.asarray(turned, np.int64), 0, 65535) // 257).astype(np.uint8))
    if turned.mode in ("RGBA", "LA", "PA") or "transparency" in turned.info:
        over = turned.convert("RGBA")
        turned = pillow.alpha_composite(pillow.new("RGBA", over.size, "white"), over)
    turned = turned.convert(mode)
    if form is not None and turned.size != form.size[::-1]:
        turned = turned.resize(form.size[::-1], pillow.Resampling.BILINEAR)
    return np.asarray(turned)


def _array(path: Path) -> np.ndarray:
    image = read_npy(path)
    if image.ndim not in (2, 3) or not image.size or image.dtype.kind not in "iubf":
        raise ShapeError(
            f"read: {str(path)!r} has shape {image.shape}, type {image.dtype}.", "an image (h, w) or (h, w, c)"
        )
    return image[:, :, None] if image.ndim == 2 else image


def _shaped(name: str, image: np.ndarray, form: ImageForm) -> np.ndarray:
    """An array (h, w, c) with the size, channels and type of a form."""
    if image.dtype != form.dtype and not (image.dtype.kind == "f" and form.dtype.startswith("float")):
        raise InputError(
            f"{name}: the pixels are of type {image.dtype}, the others are {form.dtype}; their scales may differ.",
            f"images of type {form.dtype}",
        )
    if image.shape[2] != form.channels:
        if (image.shape[2], form.channels) == (3, 1):
            grey = image @ _LUMA
            image = (grey if image.dtype.kind == "f" else np.rint(grey))[:, :, None].astype(image.dtype)
        elif image.shape[2] == 1:
            image = np.repeat(image, form.channels, axis=2)
        else:
            raise ShapeError(f"{name}: an image of {image.shape[2]} channels.", f"images of {form.channels}")
    return image if image.shape[:2] == form.size else Resize(form.size)(image)


# --- many images


def choose_form(
    files: Sequence[Path], size: tuple[int, int] | None = None, mode: str | None = None
) -> tuple[ImageForm, tuple[str, ...]]:
    """What all images of a set are made to be, and notes on what was decided.

    Their size if they are all equal and not large; else one of about 64 pixels a side with the aspect that is usual.
    Grey if all are, which is decided by headers and the pixels of some.
    """
    looks = [look for file in files if (look := _look(file)) is not None]
    if not looks:
        return ImageForm(size or (COMMON, COMMON), MODES[mode or "RGB"]), ()  # reading says what is wrong with each
    dtype = Counter(look.dtype for look in looks).most_common(1)[0][0]
    alike = [look for look in looks if look.dtype == dtype]
    if mode is not None:
        channels = MODES[mode]
    else:
        channels = max(look.channels for look in alike)
        if channels == 3 and dtype == "uint8" and all(map(_looks_grey, _spread(files, LOOKED_AT))):
            channels = 1
    sizes = Counter(look.size for look in alike)
    notes = []
    if size is None:
        size = common_size(list(sizes.elements()))
        if len(sizes) > 1:
            heights, widths = zip(*sizes, strict=True)
            notes.append(
                f"the images have {len(sizes)} sizes, from {min(heights)} x {min(widths)} to {max(heights)} x "
                f"{max(widths)} pixels; all are made {size[0]} x {size[1]} (data.size=...)."
            )
        elif size not in sizes:
            ((height, width),) = sizes
            notes.append(f"the images of {height} x {width} pixels are made {size[0]} x {size[1]} (data.size=...).")
    return ImageForm(size, channels, dtype), tuple(notes)


def common_size(sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The size for images of these sizes.

    >>> common_size([(28, 28), (28, 28)]), common_size([(480, 640), (600, 800), (640, 480)])
    ((28, 28), (56, 72))
    """
    if len(set(sizes)) == 1 and max(sizes[0]) <= LARGEST:
        return sizes[0]
    heights, widths = np.array(sizes, np.float64).T
    area = float(min(np.median(heights * widths), COMMON**2))
    aspect = float(np.clip(np.exp(np.median(np.log(heights / widths))), 0.25, 4.0))
    aspect = 1.0 if 0.8 <= aspect <= 1.25 else aspect
    return _even(math.sqrt(area * aspect)), _even(math.sqrt(area / aspect))


def _even(side: float) -> int:
    """A side that can be halved some times."""
    step = 8 if side >= 24 else 4 if side >= 8 else 1
    return max(1, step * round(side / step))


def read_images(
    files: Sequence[Path], form: ImageForm, unreadable: str = "error"
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The images (n, h, w, c), the places of their files among those given, and notes.

    Each is decoded to its final size, so that no more than the result is in memory, which is checked before.
    """
    nbytes = len(files) * math.prod(form.shape) * np.dtype(form.dtype).itemsize
    check_room("read", nbytes, f"{len(files):,} images of {form} need", "a smaller data.size")
    pixels = np.zeros((len(files), *form.shape), form.dtype)
    if any(file.suffix.lower() != ".npy" for file in files):
        need("read: images", "PIL.Image", "images")
    kept, notes = read_all("image", files, lambda file: read_image(file, form), pixels, unreadable)
    return (pixels if len(kept) == len(files) else pixels[kept]), kept, notes


def as_images(x: object, form: ImageForm) -> np.ndarray:
    """Arrays in memory, one image or many, as a form says: (n, h, w, c).

    >>> as_images(np.zeros((4, 6, 3), np.uint8), ImageForm((2, 3), 1)).shape
    (1, 2, 3, 1)
    """
    array = np.asarray(x)
    if array.ndim == 3 and (array.shape[1:] == form.size or array.shape[-1] not in (form.channels, 1, 3, 4)):
        array = array[..., None]  # many grey images
    if array.ndim not in (2, 3, 4) or not array.size or array.dtype.kind not in "iubf":
        raise ShapeError(f"an array of shape {array.shape} is no image.", f"images (n, h, w, c) of {form}")
    many = array if array.ndim == 4 else array[None] if array.ndim == 3 else array[None, :, :, None]
    many = many[..., :3] if many.shape[-1] == 4 and form.channels in (1, 3) else many
    return np.stack([_shaped("the array", image, form) for image in many])


def as_size(size: object) -> tuple[int, int] | None:
    """The setting data.size: a number, a pair, or a text such as "48x64".

    >>> as_size(64), as_size([48, 64]), as_size("48x64"), as_size(None)
    ((64, 64), (48, 64), (48, 64), None)
    """
    if size is None:
        return None
    found = size
    if isinstance(size, str):
        found = [int(part) if part.strip().isdecimal() else part for part in size.lower().split("x")]
    pair = [found, found] if isinstance(found, int) else found
    if (
        not isinstance(pair, (list, tuple))
        or len(pair) not in (1, 2)
        or any(isinstance(n, bool) or not isinstance(n, int) or not 0 < n < 2**15 for n in pair)
    ):
        raise InputError(f"data.size = {size!r}.", "64, or [height, width]")
    return int(pair[0]), int(pair[-1])


def _look(file: Path) -> Look | None:
    try:
        return look_at(file)
    except WonderlandError:
        return None  # reading it will say so


def _spread(files: Sequence[Path], count: int) -> list[Path]:
    """Some of the files, from the first to the last."""
    return [files[i] for i in np.unique(np.linspace(0, len(files) - 1, count).astype(int))]


def _looks_grey(file: Path) -> bool:
    if file.suffix.lower() == ".npy":
        return False
    try:
        pixels = read_image(file, ImageForm((32, 32), 3)).astype(np.int16)
    except WonderlandError:
        return True  # it says nothing
    return float(np.abs(pixels - pixels.mean(-1, keepdims=True)).mean()) < 1.0
