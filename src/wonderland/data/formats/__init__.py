"""Readers of the usual public formats from a local path, a file per format. What is damaged is refused by name."""

from .cifar import cifar10, cifar100, read_cifar10, read_cifar100
from .delimited import read_csv
from .folders import ImageFolder
from .idx import read_idx, write_idx
from .numpy_files import read_npy, read_npz
from .parquet import read_parquet
from .sounds import SoundFolder

# fmt: off
__all__ = [
    "read_idx", "write_idx", "read_cifar10", "read_cifar100", "cifar10", "cifar100", "read_csv", "read_parquet",
    "read_npy", "read_npz", "ImageFolder", "SoundFolder",
]
