"""The examples that went wrong: the most confident mistakes of a classifier, the largest errors of a regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import InputError, ShapeError
from ..data.tables import Table
from ..viz.marks import shortened
from .outcomes import Array, Classified, Estimated
from .page import figure, paragraph, shown, table
from .pictures import Image, Section

MOST = 24
MOST_VALUES = 12  # of an example that is no image
LARGEST = 128  # pixels of a side


def mistakes_section(
    found: Classified | Estimated, examples: object, names: Sequence[str] = (), asked: Table | None = None
) -> Section:
    """A picture or a row of values for each of the worst mistakes; `names` are what the examples are called.

    Rows of a table that was `asked` about are shown as they were written.
    """
    rows = worst(found)
    if not rows:
        return Section("Mistakes", paragraph("Every prediction is right."))
    features = _features(examples, found)
    if names and len(names) != len(features):
        raise ShapeError(f"report: {len(names)} names of {len(features)} examples.", "one for each")
    called = [names[place] if names else place for place, _ in rows]
    chosen = features[[place for place, _ in rows]]
    if isinstance(found, Classified):
        wrong = int(np.count_nonzero(found.wrong))
        text = f"The {len(rows)} most confident of {wrong:,} mistakes." if wrong > len(rows) else "All mistakes."
    else:
        text = f"The {len(rows)} examples with the largest errors."
    if chosen.ndim == 4 and chosen.shape[-1] in (1, 3) and chosen.dtype.kind in "fiub":
        texts = [
            f"{name}: {_said(what)}" if names else _said(what) for name, (_, what) in zip(called, rows, strict=True)
        ]
        titles = texts if names else [f"Example {place}: {text}" for place, text in zip(called, texts, strict=True)]
        pictures = [Image(title, pixels) for title, pixels in zip(titles, as_bytes(chosen), strict=True)]
        cards = "".join(figure(picture, text) for picture, text in zip(pictures, texts, strict=True))
        return Section("Mistakes", paragraph(text) + f'<div class="images">{cards}</div>', {"mistakes": [*pictures]})
    head = ["example", *rows[0][1], "values"]
    if asked is not None and len(asked) == len(features):
        words = _as_written(asked, [place for place, _ in rows])
    else:
        words = [_values(x) for x in chosen]
    listing = [[name, *what.values(), said] for name, (_, what), said in zip(called, rows, words, strict=True)]
    return Section("Mistakes", paragraph(text) + table(head, listing))


def _as_written(asked: Table, places: list[int]) -> list[str]:
    """Rows of a table in words."""
    names = asked.names[:MOST_VALUES]
    parts = [asked[name].select(np.array(places)).strings().tolist() for name in names]
    more = ", …" if len(asked.names) > len(names) else ""
    return [
        ", ".join(f"{name} {shortened(value, 40) or 'missing'}" for name, value in zip(names, row, strict=True)) + more
        for row in zip(*parts, strict=True)
    ]


def worst(found: Classified | Estimated) -> list[tuple[int, dict[str, object]]]:
    """The places of the worst mistakes, the worst first, and what to say of each.

    >>> from .outcomes import read
    >>> worst(read([[0.9, 0.1], [0.2, 0.8]], [1, 1], ["cat", "dog"]))
    [(0, {'true': 'dog', 'predicted': 'cat', 'confidence': 0.9})]
    """
    if isinstance(found, Classified):
        places = np.flatnonzero(found.wrong)
        order = places[np.argsort(-found.confidence[places], kind="stable")][:MOST]
        return [
            (
                int(i),
                {
                    "true": found.names[found.true[i]],
                    "predicted": found.names[found.predicted[i]],
                    "confidence": float(found.confidence[i]),
                },
            )
            for i in order
        ]
    with np.errstate(over="ignore"):  # a model that diverged
        errors = np.sqrt(np.sum((found.predicted - found.true) ** 2, axis=1))
    order = np.argsort(-errors, kind="stable")[:MOST]
    return [
        (
            int(found.places[i]),
            {"true": _values(found.true[i]), "predicted": _values(found.predicted[i]), "error": float(errors[i])},
        )
        for i in order
        if errors[i] > 0
    ]


def as_bytes(images: Array) -> Array:
    """Images (n, h, w, c) as bytes. Bytes and numbers from 0 to 1 are what they are; others are scaled to their range.

    >>> as_bytes(np.array([[[[-1.0], [1.0]]]])).ravel().tolist()
    [0, 255]
    """
    step = -(-max(images.shape[1:3]) // LARGEST)
    images = images[:, ::step, ::step]
    if images.dtype == np.uint8:
        return images
    values = np.nan_to_num(images.astype(np.float64), posinf=1.0, neginf=0.0)
    low, high = min(values.min(), 0.0), max(values.max(), 1.0)
    return np.rint((values - low) / (high - low) * 255).astype(np.uint8)


def _features(examples: Any, found: Classified | Estimated) -> Array:
    try:
        features = np.asarray(examples)
    except ValueError:  # ragged
        features = np.array([None, *examples], dtype=object)[1:]
    many = len(found.true) + (found.left_out if isinstance(found, Estimated) else 0)
    if features.ndim == 0 or len(features) != many:
        size = "no list" if features.ndim == 0 else f"{len(features):,}"
        raise ShapeError(
            f"report: examples of shape {features.shape} ({size}) for {many:,} targets.", "an example for each target"
        )
    if not features.size:
        raise InputError(f"report: examples of shape {features.shape} are empty.", "examples with values")
    return features


def _said(what: dict[str, object]) -> str:
    return ", ".join(f"{name} {shown(value)}" for name, value in what.items())


def _values(x: Array) -> str:
    if isinstance(x, (str, bytes)):
        return shortened(str(x), 300)
    flat = np.ravel(x)
    words = [shown(value) if isinstance(value, (int, float)) else str(value) for value in flat[:MOST_VALUES].tolist()]
    return ", ".join(words) + (", …" if flat.size > MOST_VALUES else "")
