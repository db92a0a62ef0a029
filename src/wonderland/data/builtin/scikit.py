"""scikit-learn's toy datasets, when it is installed (`pip install wonderland[sklearn]`)."""

from __future__ import annotations

import numpy as np

from ...core.errors import InputError
from ...core.typing import DTypeLike
from ..extras import need
from ..record import DatasetRecord

NAMES = {
    "breast_cancer": "569 tumours, 30 measurements, malignant or benign",
    "diabetes": "442 patients, 10 measurements, progression after a year (regression)",
    "linnerud": "20 people, 3 exercises, 3 body measurements (regression)",
    "wine": "178 wines, 13 chemical measurements, 3 growers",
}


def from_sklearn(name: str, *, dtype: DTypeLike = np.float32) -> DatasetRecord:
    """A dataset of scikit-learn's `load_*` functions as a record: breast_cancer, diabetes, linnerud, wine.

    >>> import wonderland as wl
    >>> wl.data.load("wine")  # doctest: +SKIP
    DatasetRecord('wine', features (178, 13) float32, targets (178,) int64, 3 classes)
    """
    if name not in NAMES:
        raise InputError(f"from_sklearn: no dataset {name!r}.", f"one of {', '.join(NAMES)}")
    bunch = getattr(need(f"load({name!r})", "sklearn.datasets", "sklearn"), f"load_{name}")()
    classes = np.issubdtype(bunch.target.dtype, np.integer)
    return DatasetRecord(
        bunch.data.astype(dtype),
        bunch.target.astype(np.int64 if classes else dtype),
        name,
        tuple(map(str, bunch.feature_names)),
        tuple(map(str, bunch.target_names)) if classes else (),
        NAMES[name],
    )
