"""Where a result comes from: settings, versions, the machine and the time."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from ..core import __version__
from ..core.errors import InputError
from ..engines.native.threads import get_threads
from ..viz.marks import shortened
from .page import table
from .pictures import Section

LONGEST = 400  # characters of a setting


def settings_section(settings: object) -> Section | None:
    """A table of all settings; nothing if there are none."""
    if not isinstance(settings, Mapping):
        raise InputError(f"report: settings of type {type(settings).__name__}.", "a dict")
    rows = list(flat(settings).items())
    return Section("Settings", table(["setting", "value"], rows)) if rows else None


def flat(settings: Mapping[object, object], prefix: str = "") -> dict[str, str]:
    """Nested settings as texts by dotted names.

    >>> flat({"lr": 0.1, "model": {"hidden": [32, 32], "name": "mlp"}})
    {'lr': '0.1', 'model.hidden': '[32, 32]', 'model.name': 'mlp'}
    """
    found: dict[str, str] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{name}.")
        else:
            found[name] = shortened(str(value), LONGEST)
    return found


def versions_section() -> Section:
    """Versions of Python and the libraries, the machine, and the date."""
    return Section("Versions", table(["", "version"], list(versions().items())))


def versions() -> dict[str, str]:
    """What one needs to know to repeat a run.

    >>> list(versions())[:3]
    ['date', 'wonderland', 'python']
    """
    found = {
        "date": datetime.now().astimezone().isoformat(sep=" ", timespec="seconds"),
        "wonderland": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    for library in ("numpy", "llvmlite", "ml_dtypes"):
        try:
            found[library] = version(library)
        except PackageNotFoundError:  # put in place by hand
            found[library] = "unknown"
    return found | {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "threads": str(get_threads()),
    }
