"""What notebooks show of a thing. How that is written is loaded when a notebook asks: nobody else needs it."""

from __future__ import annotations

import importlib


def as_html(kind: str, thing: object) -> str | None:
    """The HTML of a tensor, a module, a summary or a history; None where its text says all."""
    found: str | None = getattr(importlib.import_module("wonderland.notebooks"), kind)(thing)
    return found
