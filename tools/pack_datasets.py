"""Makes the files of the built-in datasets from scikit-learn's copies:

python -m tools.pack_datasets [folder]

The same input and zlib give the same bytes; the hashes in `wonderland/data/builtin/bundled.py` are of these files.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent.parent / "src" / "wonderland" / "data" / "builtin"


def held_out(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """True for `count` examples, with the share of each class kept as well as whole numbers can."""
    ideal = np.bincount(labels) * count / len(labels)
    sizes = np.floor(ideal).astype(int)
    sizes[np.argsort(sizes - ideal, kind="stable")[: count - sizes.sum()]] += 1  # the largest remainders
    rng = np.random.Generator(np.random.Philox(seed))
    mask = np.zeros(len(labels), bool)
    for label, size in enumerate(sizes):
        mask[rng.permutation(np.flatnonzero(labels == label))[:size]] = True
    return mask


def pack(path: Path, **arrays: Any) -> None:
    np.savez_compressed(path, **arrays)
    print(path.name, path.stat().st_size, "bytes", hashlib.sha256(path.read_bytes()).hexdigest())


def main(folder: Path) -> None:
    from sklearn.datasets import load_digits, load_iris  # type: ignore[import-untyped]  # the package has no stubs

    digits = load_digits()
    labels = digits.target.astype(np.uint8)
    mask = np.packbits(held_out(labels, 360, seed=0))
    pack(folder / "digits.npz", images=digits.images.astype(np.uint8), labels=labels, test=mask)
    iris = load_iris()
    labels = iris.target.astype(np.uint8)
    tenths = np.round(iris.data * 10).astype(np.uint8)  # millimetres: the measurements have one decimal
    assert np.array_equal(tenths / 10, iris.data)
    pack(folder / "iris.npz", millimetres=tenths, labels=labels, test=np.packbits(held_out(labels, 30, seed=0)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
