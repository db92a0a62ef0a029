"""What packages offer is listed once, in their files, and reaches programs and type checkers alike."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import pytest

import wonderland as wl
from wonderland.core.naming import offer

ELSEWHERE = {"functional", "init", "losses", "diagnostics", "regions"}  # packages and files with names of their own


def declared(package: Any) -> list[str]:
    """The names in the `__all__` of the files below a package."""
    names: list[str] = []
    for found in pkgutil.iter_modules(package.__path__):
        if found.name not in ELSEWHERE:
            module = importlib.import_module(f"{package.__name__}.{found.name}")
            names += declared(module) if found.ispkg else getattr(module, "__all__", ())
    return names


def test_nn_offers_what_its_files_declare_and_a_few_modules() -> None:
    modules = ["functional", "init", "diagnostics", "regions"]
    names = [*declared(wl.nn), *declared(wl.nn.losses), *modules, "structure_version"]  # type: ignore[attr-defined]
    assert sorted(names) == sorted([*wl.nn.__dict__["__all__"], "Loss"])  # the base of losses is in nn.losses only


@pytest.mark.parametrize("path", ["nn.init", "nn.losses", "nn.functional.losses"])
def test_packages_offer_what_their_files_declare(path: str) -> None:
    package = importlib.import_module(f"wonderland.{path}")
    more = ["variance_report"] if path == "nn.init" else []
    assert sorted(vars(package)["__all__"]) == sorted([*declared(package), *more])
    assert not any(inspect.ismodule(getattr(package, name)) for name in vars(package)["__all__"])


def test_a_star_import_brings_what_is_offered() -> None:
    names: dict[str, Any] = {}
    exec("from wonderland.nn import *", names)
    assert set(names) - {"__builtins__"} == set(vars(wl.nn)["__all__"])


def test_offered_are_public_names_that_are_no_modules() -> None:
    names: dict[str, Any] = {"f": 1, "_g": 2, "wl": wl, "inner": 3, "__version__": "1"}
    offer(names, also=["__version__"], but=["inner"])
    assert names["__all__"] == ["__version__", "f"]
