"""How near predicted numbers are to the true ones."""

from __future__ import annotations

import numpy as np

from ..viz.axes import span
from ..viz.plot import Curve
from .outcomes import Array, Estimated
from .page import facts, figures, paragraph, table
from .pictures import SQUARE, Picture, Plot, Section, histogram_of

MOST_POINTS = 2000  # of a scatter plot
MOST_OUTPUTS = 6  # with pictures of their own
GREY = "#94a3b8"


def regression_section(found: Estimated) -> Section:
    """Predicted against true numbers, and the errors, for each output."""
    with np.errstate(over="ignore", invalid="ignore"):  # a model that diverged
        return _section(found, found.predicted - found.true)


def _section(found: Estimated, errors: Array) -> Section:
    outputs = errors.shape[1]
    pictures: list[Picture] = []
    for k in range(min(outputs, MOST_OUTPUTS)):
        of = f", output {k}" if outputs > 1 else ""
        true, predicted = found.true[:, k], found.predicted[:, k]
        some = np.linspace(0, len(true) - 1, min(len(true), MOST_POINTS)).astype(np.int64)
        ends = span(np.concatenate([true, predicted]), 0.04)
        shapes = [
            Curve(true[some], predicted[some], "examples", dots=True),
            Curve(ends, ends, "exact", dashed=True, colour=GREY),
        ]
        pictures.append(Plot(f"Predicted and true{of}", shapes, "true", "predicted", SQUARE, ends, ends))
        finite = np.clip(errors[:, k], -1e300, 1e300)
        pictures.append(histogram_of(f"Residuals{of}: predicted minus true", finite, x_label="residual", size=SQUARE))
    numbers = [
        [f"output {k}" if outputs > 1 else "output", *_measures(errors[:, k], found.true[:, k])] for k in range(outputs)
    ]
    parts = [
        facts([("RMSE", float(np.sqrt(np.mean(errors**2)))), ("mean absolute error", float(np.abs(errors).mean()))])
    ]
    if found.left_out:
        parts.append(paragraph(f"{found.left_out:,} examples whose numbers are not finite are left out."))
    if outputs > MOST_OUTPUTS:
        parts.append(paragraph(f"The pictures show the first {MOST_OUTPUTS} of {outputs:,} outputs."))
    parts.append(figures(pictures))
    parts.append(table(["", "RMSE", "mean absolute error", "mean residual", "R²"], numbers))
    return Section("Predictions", "\n".join(parts), {"predictions": pictures})


def _measures(errors: Array, true: Array) -> list[float | None]:
    spread = float(np.sum((true - true.mean()) ** 2))
    share = 1.0 - float(np.sum(errors**2)) / spread if spread > 0 else None  # no spread, nothing to explain
    return [float(np.sqrt(np.mean(errors**2))), float(np.abs(errors).mean()), float(errors.mean()), share]
