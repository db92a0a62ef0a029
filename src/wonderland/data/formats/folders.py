"""Folders of images: one subfolder per class, each image read when it is asked for."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...core.errors import InputError, ShapeError
from ...core.typing import PathLike
from ...storage.bounds import unpacked_limit
from ..dataset import Dataset
from ..extras import need
from .files import as_path, damaged, read_bytes
from .numpy_files import read_npy

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp", ".npy")


class ImageFolder(Dataset):
    """The images under `root/class/...`, with their class: a dataset of (image (h, w, c) uint8, label).

    >>> import os, tempfile, numpy as np, wonderland as wl
    >>> root = tempfile.mkdtemp()
    >>> for name in ("cat", "dog"):
    ...     os.mkdir(os.path.join(root, name))
    ...     np.save(os.path.join(root, name, "1.npy"), np.zeros((4, 4, 3), np.uint8))
    >>> animals = wl.data.ImageFolder(root)
    >>> animals.classes, animals.targets
    (('cat', 'dog'), (0, 1))
    >>> image, label = animals[1]
    >>> image.shape, label
    ((4, 4, 3), 1)

    Classes are the subfolders in sorted order, and files are in sorted order within them. `mode` is "RGB" (three
    channels) or "L" (one, grey); `.npy` images are taken as they are. `size=(h, w)` resizes every image, so that they
    can be batched. Pillow (`pip install wonderland[images]`) is needed when another image is read.
    """

    def __init__(
        self,
        root: PathLike,
        *,
        mode: str = "RGB",
        size: tuple[int, int] | None = None,
        extensions: Sequence[str] = EXTENSIONS,
    ) -> None:
        if mode not in ("RGB", "L"):
            raise InputError(f"ImageFolder: mode={mode!r}.", "'RGB' or 'L'")
        self.root = as_path("ImageFolder", root)
        if not self.root.is_dir():
            raise InputError(f"ImageFolder: {str(self.root)!r} is not a folder.", "a folder with a subfolder per class")
        self.mode, self.size = mode, size
        folders = sorted(folder for folder in self.root.iterdir() if folder.is_dir() and folder.name[0] != ".")
        if not folders:
            raise InputError(f"ImageFolder: {str(self.root)!r} has no subfolders.", "a subfolder for each class")
        self.classes = tuple(folder.name for folder in folders)
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}
        endings = tuple(ending.lower() for ending in extensions)
        self.samples: list[tuple[Path, int]] = []
        for label, folder in enumerate(folders):
            found = sorted(_files(folder, endings))
            if not found:
                raise InputError(
                    f"ImageFolder: no image in {str(folder)!r}.",
                    f"files ending in {', '.join(endings)}, or no such folder",
                )
            self.samples.extend((file, label) for file in found)

    @property
    def targets(self) -> tuple[int, ...]:
        """The labels of all examples, without reading an image."""
        return tuple(label for _, label in self.samples)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The classes, as a record calls them."""
        return self.classes

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        path, label = self.samples[self._place(i)]
        image = _read_image(path, self.mode)
        if self.size is not None:
            from ..transforms.resizing import Resize

            image = Resize(self.size)(image)
        return image, label

    def __repr__(self) -> str:
        return f"ImageFolder({str(self.root)!r}, {len(self)} images, {len(self.classes)} classes)"


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    return [
        Path(place) / name
        for place, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(endings) and not name.startswith(".")
    ]


def _read_image(path: Path, mode: str) -> np.ndarray:
    if path.suffix.lower() == ".npy":
        image = read_npy(path)
        if image.ndim not in (2, 3):
            raise ShapeError(f"ImageFolder: {str(path)!r} has shape {image.shape}.", "an image (h, w) or (h, w, c)")
        return image[:, :, None] if image.ndim == 2 else image
    pillow = need(f"ImageFolder: {str(path)!r}", "PIL.Image", "images")
    data = read_bytes("ImageFolder", path, unpack=False)
    limit = unpacked_limit(len(data))
    try:
        with pillow.open(io.BytesIO(data)) as picture:
            width, height = picture.size
            if 3 * width * height > limit:
                raise ValueError(f"{width} x {height} pixels in {len(data):,} bytes")
            picture.verify()  # the checksums of a PNG, which decoding alone does not look at
        with pillow.open(io.BytesIO(data)) as picture:  # one that was verified cannot be decoded
            pixels = np.asarray(picture.convert(mode))
    except Exception as error:  # a damaged image takes the decoder to lines of its own that raise anything
        raise damaged("ImageFolder", path, f"a whole {path.suffix} image within {limit:,} bytes", error) from None
    return pixels[:, :, None] if mode == "L" else pixels
