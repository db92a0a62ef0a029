"""Libraries that only some readers need: imported when used, and named with the extra that installs them."""

from __future__ import annotations

import importlib
from typing import Any

from ..core.errors import InputError


def need(name: str, module: str, extra: str) -> Any:
    """The module, or the error that says how to install it.

    >>> need("demo", "json", "none").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise InputError(f"{name}: {library} is not installed.", f"pip install 'wonderland[{extra}]'") from None
