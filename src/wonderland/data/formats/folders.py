"""Folders of images: one subfolder per class, each image read when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...core.errors import InputError
from ...core.typing import PathLike
from ..transforms.resizing import Resize
from .files import as_path
from .images import read_image
from .media_files import IMAGES, LabelledFiles


class ImageFolder(LabelledFiles):
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
        extensions: Sequence[str] = IMAGES,
    ) -> None:
        if mode not in ("RGB", "L"):
            raise InputError(f"ImageFolder: mode={mode!r}.", "'RGB' or 'L'")
        self.root = as_path("ImageFolder", root)
        if not self.root.is_dir():
            raise InputError(f"ImageFolder: {str(self.root)!r} is not a folder.", "a folder with a subfolder per class")
        self.mode, self.size = mode, size
        folders = sorted(folder for folder in self.root.iterdir() if folder.is_dir() and folder.name[0] != ".")
        if not folders:
            raise InputError(
                f"ImageFolder: {str(self.root)!r} has no images and no subfolders.", "a subfolder for each class"
            )
        self.classes = tuple(folder.name for folder in folders)
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}
        endings = tuple(ending.lower() for ending in extensions)
        self.samples = []
        for label, folder in enumerate(folders):
            found = sorted(_files(folder, endings))
            if not found:
                raise InputError(
                    f"ImageFolder: no image in {str(folder)!r}.",
                    f"files ending in {', '.join(endings)}, or no such folder",
                )
            self.samples.extend((file, label) for file in found)

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        path, label = self.samples[self._place(i)]
        image = read_image(path, mode=self.mode)
        return (image if self.size is None else Resize(self.size)(image)), label

    def __repr__(self) -> str:
        return f"ImageFolder({str(self.root)!r}, {len(self)} images, {len(self.classes)} classes)"


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    return [
        Path(place) / name
        for place, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(endings) and not name.startswith(".")
    ]
