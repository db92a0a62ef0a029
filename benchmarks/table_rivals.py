"""scikit-learn on a table that somebody has understood: units taken off, dates as numbers, useless columns left out.

The rivals are told what each column is, which `wonderland train` must find out.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor  # type: ignore[import-untyped]
from sklearn.impute import SimpleImputer  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression, Ridge  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler  # type: ignore[import-untyped]

from .public_tables import PublicTable, Value

USELESS = ("number", "unit", "Name")  # a running number, a constant, free text


def linear(train: PublicTable, test: PublicTable) -> np.ndarray:
    """Predictions of a linear model after imputation with indicators, standardisation and one-hot encoding."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    model = LogisticRegression(max_iter=5000) if train.classes else Ridge()
    return _predictions(train, test, numbers, words, model)


def boosting(train: PublicTable, test: PublicTable) -> np.ndarray:
    """Predictions of histogram gradient boosting, which takes gaps as they are and words as numbers."""
    words = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = HistGradientBoostingClassifier if train.classes else HistGradientBoostingRegressor
    return _predictions(train, test, FunctionTransformer(), words, model(random_state=0))


def target(table: PublicTable) -> np.ndarray:
    """What is to be predicted: names of classes, or numbers."""
    values = table.columns[table.target]
    return np.array(values, float) if not table.classes else np.array([str(v) for v in values])


def _predictions(train: PublicTable, test: PublicTable, numbers: Any, words: Any, model: Any) -> np.ndarray:
    seen, new = understood(train), understood(test)
    steps = [step for step, part in zip((numbers, words), seen, strict=True) if part.shape[1]]
    parts = [(a, b) for a, b in zip(seen, new, strict=True) if a.shape[1]]
    x = np.hstack([step.fit_transform(a) for step, (a, _) in zip(steps, parts, strict=True)])
    asked = np.hstack([step.transform(b) for step, (_, b) in zip(steps, parts, strict=True)])
    return np.asarray(model.fit(x, target(train)).predict(asked))


def understood(table: PublicTable) -> tuple[np.ndarray, np.ndarray]:
    """The columns of numbers, NaN where one is missing, and those of words."""
    numbers: list[list[float]] = []
    words: list[list[str]] = []
    for name in sorted(table.features):
        values = table.columns[name]
        if name in USELESS:
            continue
        if any(isinstance(v, datetime.date) for v in values):
            numbers += _date_parts(values)
        elif (found := _measured(values)) is not None:
            numbers.append(found)
        else:
            words.append(["missing" if v is None else str(v) for v in values])
    n = len(table)
    return np.array(numbers, float).reshape(-1, n).T, np.array(words, object).reshape(-1, n).T


def _date_parts(values: list[Value]) -> list[list[float]]:
    """Days since the beginning, the month, the day of the week and of the year."""
    days = [v if isinstance(v, datetime.date) else None for v in values]
    parts = (
        datetime.date.toordinal,
        lambda day: day.month,
        datetime.date.weekday,
        lambda day: day.timetuple().tm_yday,
    )
    return [[float("nan") if day is None else float(part(day)) for day in days] for part in parts]


def _measured(values: list[Value]) -> list[float] | None:
    """Numbers with or without their unit; None if there are others."""
    try:
        return [float("nan") if v is None else float(str(v).removesuffix(" mm")) for v in values]
    except ValueError:
        return None
