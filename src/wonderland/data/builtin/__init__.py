"""Datasets that need no network: bundled, generated from a seed, scikit-learn's, and MNIST from local files."""

from .bundled import digits, iris
from .generated import (
    make_bimodal,
    make_blobs,
    make_circles,
    make_heteroscedastic,
    make_imbalanced,
    make_income_rule,
    make_moons,
    make_outliers,
    make_parity,
    make_regression,
    make_sine,
    make_spirals,
    make_swiss_roll,
    make_xor,
)
from .memory_tasks import make_delay_task, make_selective_copy_task
from .mnist import mnist
from .scikit import from_sklearn
from .sequence_tasks import SequencePairs, make_addition_task, make_copy_task, make_reverse_task, make_sort_task
from .shapes import make_shapes
from .sounds import make_sounds, write_sounds

# fmt: off
__all__ = [
    "digits", "iris", "mnist", "from_sklearn", "make_xor", "make_parity", "make_moons", "make_circles", "make_blobs",
    "make_spirals", "make_swiss_roll", "make_regression", "make_sine", "make_income_rule", "make_heteroscedastic",
    "make_outliers", "make_imbalanced", "make_bimodal", "make_shapes", "SequencePairs",
    "make_copy_task", "make_reverse_task", "make_sort_task", "make_addition_task", "make_delay_task",
    "make_selective_copy_task", "make_sounds", "write_sounds",
]
