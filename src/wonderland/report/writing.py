"""`wl.report.write`: the page of a run, and its pictures as files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from ..core.errors import InputError
from ..core.typing import ArrayLike
from ..data.tables import Table
from ..nn.module.module import Module
from ..storage.atomic import write_atomically
from ..train.history import History
from . import png as png_files
from .classification import classification_section
from .columns import baselines_section, columns_section, nearest_section
from .curves import curves_section
from .diagnosis import Diagnosis, examine
from .evidence import Groups
from .findings import findings_section
from .graphs import graph_sections
from .language import language_sections
from .mistakes import mistakes_section
from .models import gradients_of, model_section, spread_section
from .outcomes import Classified, read
from .page import facts, page
from .pictures import Section
from .provenance import settings_section, versions, versions_section
from .regression import regression_section


def write(
    path: str | os.PathLike[str],
    *,
    title: str,
    history: History,
    model: Module | None = None,
    settings: Mapping[str, object] | None = None,
    predictions: ArrayLike | None = None,
    targets: ArrayLike | None = None,
    class_names: Sequence[str] = (),
    examples: object = None,
    example_names: Sequence[str] = (),
    gradients: Mapping[str, ArrayLike] | None = None,
    results: Mapping[str, object] | None = None,
    language: Mapping[str, object] | None = None,
    graphs: Mapping[str, object] | None = None,
    training: tuple[ArrayLike, ArrayLike] | None = None,
    feature_names: Sequence[str] | None = None,
    groups: Groups | None = None,
    table: Table | None = None,
    diagnosis: Diagnosis | None = None,
    png: bool = True,
) -> list[str]:
    """Write a report of a run: one HTML file that needs nothing else, and its pictures as PNG; returns the paths.

    >>> import os, tempfile
    >>> import wonderland as wl
    >>> x = wl.linspace(-1.0, 1.0, 32).reshape(32, 1)
    >>> model = wl.nn.Linear(1, 1)
    >>> history = wl.train.fit(model, "mse_loss", (x, 3 * x), epochs=3, progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = wl.report.write(
    ...         os.path.join(folder, "report.html"), title="A line", history=history, model=model,
    ...         predictions=model(x), targets=3 * x, examples=x, settings={"epochs": 3}, png=False,
    ...     )
    ...     [os.path.basename(path) for path in written]
    ['report.html']

    - `history`: of `wl.train.fit`: curves of losses, metrics and the learning rate, with events and the best epoch.
    - `predictions` and `targets`: probabilities (n, classes) of classes (n,), named by `class_names`, give a confusion
      matrix, precision and recall of each class, a reliability diagram and the spread of the confidence; numbers (n,)
      or (n, k) of numbers give predicted against true ones and the residuals.
    - `examples` (n, ...): what was predicted from. The 24 most confident mistakes are shown, as pictures if they are
      images (n, h, w, 1 or 3). `example_names` are what they are called, as files.
    - `model`: a summary, the graph of a forward pass on one of the examples, histograms of the parameters. `gradients`:
      a dict from paths to arrays, as `wl.train.Watch().gradients`, gives histograms of those.
    - `results`: what was measured, by name; it comes first. `settings`: a nested dict.
    - `language`: of models that write. "samples", pairs of a prompt and what was written; "trace", what
      `wl.generation.trace` gives; "attention", a list of (title, weights (t, t)) and the names of the t tokens;
      "positions", similarities (n, n); "pairs", rows (source, target, output, whether it is right); "filled", texts as
      lists of (token, None), or (token, (guess, truth, probability)) where one was hidden.
    - `graphs`: of models on graphs. "graph", whose nodes have the classes "true" (-1 if unknown) and "predicted",
      "asked" where it is a test, and "attention", a weight per edge; or "graphs" with "true" and "predicted" of each;
      "names" of the classes; "confidence"; "embedding", rows of features.
    - `training`: inputs and targets that the model was trained on. With these, `model`, `examples` and `targets` the
      page begins with findings and remedies, and has baselines, the columns that matter and what is near to mistakes;
      `feature_names`, `groups` and `table` are those of `wl.report.diagnose`. Or `diagnosis`, what `wl.report.examine`
      gave.
    - `png`: also write `report-curves.png` and the like beside `report.html`, if matplotlib is installed.

    What is not given is left out. Files appear whole or not at all. Book, sections 4.3.3 and 9.2.
    """
    path = checked_path(path)
    if not isinstance(history, History):
        raise InputError(f"report: a history of type {type(history).__name__}.", "what wl.train.fit returns")
    if (predictions is None) != (targets is None):
        given, missing = ("predictions", "targets") if targets is None else ("targets", "predictions")
        raise InputError(f"report: {given} without {missing}.", "both or neither")
    if diagnosis is None and training is not None:
        if model is None or examples is None or targets is None:
            raise InputError("report: training data without a model, examples and targets.", "all of them, or none")
        diagnosis = examine(
            model,
            (np.asarray(examples), targets),
            training=training,
            history=history,
            class_names=class_names,
            feature_names=feature_names,
            groups=groups,
            table=table,
            predictions=predictions,
        )
    measured = [(str(name).replace("_", " "), value) for name, value in (results or {}).items()]
    sections: list[Section | None] = [] if diagnosis is None else [findings_section(diagnosis.findings)]
    sections.append(Section("Results", facts(measured)) if measured else None)
    if diagnosis is not None:
        sections.append(baselines_section(diagnosis))
    sections.append(curves_section(history))
    if language is not None:
        sections += language_sections(language)
    if predictions is not None and targets is not None:
        found = read(predictions, targets, class_names)
        sections += classification_section(found) if isinstance(found, Classified) else [regression_section(found)]
        if examples is not None:
            sections.append(mistakes_section(found, examples, example_names, table))
    if diagnosis is not None:
        seen = None if training is None else np.asarray(training[0])
        sections.append(nearest_section(diagnosis, None if examples is None else np.asarray(examples), seen))
        sections.append(columns_section(diagnosis, _names(diagnosis, class_names)))
    if graphs is not None:
        sections += graph_sections(graphs)
    if model is not None:
        sections.append(model_section(model, examples))
        sections.append(spread_section("Parameters", dict(model.named_parameters()), "parameters"))
    if gradients is not None:
        sections.append(spread_section("Gradients", gradients_of(gradients), "gradients"))
    if settings is not None:
        sections.append(settings_section(settings))
    sections.append(versions_section())
    return save(path, title, [section for section in sections if section is not None], png)


def _names(diagnosis: Diagnosis, class_names: Sequence[str]) -> list[str]:
    """What the outputs are called if they are classes."""
    classes = "accuracy" in diagnosis.measures and diagnosis.dependence
    outputs = diagnosis.dependence[0].answers.shape[-1] if classes else 0
    return [str(name) for name in class_names] or [str(k) for k in range(outputs)]


def save(path: str, title: str, sections: Sequence[Section], png: bool) -> list[str]:
    """Write the page and its pictures. All is made before anything is written."""
    lead = f'<p class="soft">{escape(versions()["date"])}</p>'
    files: dict[str, bytes | str] = {path: page(str(title), lead, sections)}
    if png and png_files.available():
        stem = os.path.splitext(path)[0]
        for section in sections:
            for name, pictures in section.pictures.items():
                files[f"{stem}-{name}.png"] = png_files.draw(pictures)
    for place, content in files.items():
        write_atomically(place, content)
    return list(files)


def checked_path(path: str | os.PathLike[str]) -> str:
    """The path of an HTML file."""
    name = os.fspath(path)
    if not name.lower().endswith((".html", ".htm")):
        raise InputError(f"report: the file {name!r}.", "a name that ends in .html")
    return name
