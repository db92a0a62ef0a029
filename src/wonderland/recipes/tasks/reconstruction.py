"""Autoencoders: the target is the input itself, which may come with noise. Book, section 9.2.3."""

from __future__ import annotations

import numpy as np

from ... import metrics, nn
from ...core.errors import ShapeError
from ...metrics.metric import Metric
from ..inputs import Options, check_type, kept, read, read_again, refuse_targets
from .supervised import parts, rows_of
from .task import Known, Prepared, Task


class Reconstruction(Task):
    """Images in, the same images out."""

    name = "reconstruction"
    target_is_input = True

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        refuse_targets("the target of a reconstruction is the image itself", data)
        record = read(data) if run is None else read_again(data, run, targets=False)
        if run is not None:
            check_type(record, run)
        x = np.asarray(record.features)
        x = x[..., None] if x.ndim == 3 else x
        if x.ndim != 4:
            raise ShapeError(f"{record.name}: inputs of shape {x.shape[1:]} are no images.", "images")
        x = x.astype(np.float32) / (255.0 if x.dtype == np.uint8 else 1.0)
        rest, held, test = parts(record, np.zeros(len(x), np.int64), (), validation, seed)
        return Prepared(
            record.name, *rows_of(x, x, rest, held, test), x.shape[1:], x.shape[-1], {"inputs": kept(record)}
        )

    def around(self, model: nn.Module, x: np.ndarray, about: Options) -> nn.Module:
        first = nn.Standardize.of(x, axis=tuple(range(x.ndim)))
        return nn.Sequential(first, model, first.inverse())

    def loss(self, smoothing: float, about: Options) -> nn.Module:
        return nn.MSELoss()

    def metrics(self, about: Options) -> list[Metric]:
        return [metrics.MeanAbsoluteError()]
