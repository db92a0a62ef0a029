"""Which model suits data, if none is named: by what the data are."""

from __future__ import annotations

import numpy as np

from ..data.formats.images import ImageForm
from ..data.tables.reading import is_table_source
from . import media
from .catalogue import TEXTS
from .graph_inputs import is_graph_set
from .inputs import Options, is_graph, read
from .tasks.forecasting import SERIES

SMALL = 32  # pixels a side, below which two stages of convolutions see the whole image


def suited_model(data: Options) -> tuple[str, str]:
    """The name of a model, and why it is this one.

    >>> suited_model({"name": "digits"})
    ('cnn', 'images of 8 x 8 pixels')
    >>> suited_model({"name": "moons"})
    ('mlp', 'arrays of 2 numbers')
    >>> [suited_model({"name": name})[0] for name in ("sines", "karate", "motifs")]
    ['forecaster', 'gcn', 'gin']
    """
    name = data.get("name")
    if isinstance(name, str):
        if name in SERIES:
            return "forecaster", "a series"
        if is_graph(name) or "nodes" in data:
            return ("gin", "many graphs") if is_graph_set(name) else ("gcn", "a graph")
        if name.lower().removesuffix(".gz").endswith(TEXTS) and not is_table_source(name):
            return "gpt", "a text file"
    if media.are_media(name):
        return _of_media(data)
    if is_table_source(name):
        return "tabular", "a table"
    record = read(data)
    if (record.form or {}).get("kind") == "sound":
        return "sound", "sounds"
    return _of_arrays(np.asarray(record.features))


def _of_media(data: Options) -> tuple[str, str]:
    form = media.look(data)
    return _of_images(*form.size) if isinstance(form, ImageForm) else ("sound", f"sounds of {form.seconds:.3g} s")


def _of_images(height: int, width: int) -> tuple[str, str]:
    return "cnn" if min(height, width) < SMALL else "resnet", f"images of {height} x {width} pixels"


def _of_arrays(x: np.ndarray) -> tuple[str, str]:
    if x.ndim in (3, 4):
        return _of_images(*x.shape[1:3])
    if x.ndim == 5:
        return "conv3d", f"videos or volumes of {' x '.join(map(str, x.shape[1:4]))}"
    return "mlp", f"arrays of {int(np.prod(x.shape[1:]))} numbers"
