"""Autoencoders: the target is the input itself, which may come with noise. Book, section 9.2.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import metrics, nn
from ...errors import ShapeError
from .supervised import parts, read, rows_of
from .task import Prepared, Task


class Reconstruction(Task):
    """Images in, the same images out."""

    name = "reconstruction"

    def prepare(self, data: Mapping[str, Any], validation: float, seed: int) -> Prepared:
        record = read(data)
        x = np.asarray(record.features)
        x = x[..., None] if x.ndim == 3 else x
        if x.ndim != 4:
            raise ShapeError(f"{record.name}: inputs of shape {x.shape[1:]} are no images.", "images")
        x = x.astype(np.float32) / (255.0 if x.dtype == np.uint8 else 1.0)
        rest, held, test = parts(record, np.zeros(len(x), np.int64), (), validation, seed)
        return Prepared(record.name, *rows_of(x, x, rest, held, test), x.shape[1:], x.shape[-1])

    def around(self, model: nn.Module, x: Any) -> nn.Module:
        first = nn.Standardize.of(x, axis=tuple(range(x.ndim)))
        return nn.Sequential(first, model, first.inverse())

    def loss(self, smoothing: float, about: Mapping[str, Any]) -> nn.Module:
        return nn.MSELoss()

    def metrics(self, about: Mapping[str, Any]) -> list[Any]:
        return [metrics.MeanAbsoluteError()]
