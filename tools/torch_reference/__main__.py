"""Computes the files; see the package for how to run it."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found]  # not in the project's environment

from . import (
    activations,
    attention_passes,
    convolutions,
    initialization,
    layers,
    losses,
    modules,
    normalization,
    recurrent,
    rules,
)
from .cases import plain

FOLDER = Path(__file__).parents[2] / "tests/reference"
FAMILIES = {
    "activations": activations,
    "layers": layers,
    "convolutions": convolutions,
    "normalization": normalization,
    "recurrent": recurrent,
    "losses": losses,
}


def initial_values() -> dict[str, list[Any]]:
    """Gains, fans, and filled weights in our layout."""
    init = torch.nn.init
    filled = []
    for name, shape, args in initialization.FILLED:
        weight = getattr(init, name)(torch.empty(shape), *args).numpy()
        ours = weight.transpose(*range(2, weight.ndim), 1, 0)
        filled.append(plain({"name": name, "args": args, "shape": ours.shape, "weight": ours}))
    fans = []
    for shape in initialization.SHAPES:
        fan_in, fan_out = init._calculate_fan_in_and_fan_out(torch.empty(shape))
        fans.append({"shape": [*shape[2:], shape[1], shape[0]], "fans": [fan_in, fan_out]})
    gains = [{"args": args, "gain": init.calculate_gain(*args)} for args in initialization.GAINS]
    return {"gains": plain(gains), "fans": fans, "filled": filled}


def public_names() -> dict[str, list[Any]]:
    """What PyTorch offers, to find out what it shares with us."""
    spaces = {
        "nn": torch.nn,
        "functional": torch.nn.functional,
        "optim": torch.optim,
        "init": torch.nn.init,
        "utils": torch.nn.utils,
    }
    return {space: [n for n in dir(module) if _public(getattr(module, n), n)] for space, module in spaces.items()}


def _public(value: Any, name: str) -> bool:
    return callable(value) and not name.startswith("_")


def write(family: str, tables: dict[str, list[Any]]) -> None:
    """A file with a line for each record."""
    parts = []
    for name, records in {"torch": [torch.__version__], **tables}.items():
        lines = ",\n".join(json.dumps(record, separators=(",", ":")) for record in records)
        parts.append(f'"{name}": [\n{lines}\n]')
    (FOLDER / f"{family}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main(chosen: list[str]) -> None:
    torch.set_default_dtype(torch.float64)  # also for numbers such as the products of NAdam
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    for family, module in FAMILIES.items():
        if not chosen or family in chosen:
            write(family, {"cases": [modules.computed(case) for case in module.CASES]})
    others = {"optimizers": rules.computed, "initialization": initial_values, "names": public_names}
    others["transformers"] = attention_passes.computed
    for family, compute in others.items():
        if not chosen or family in chosen:
            write(family, compute())


if __name__ == "__main__":
    main(sys.argv[1:])
