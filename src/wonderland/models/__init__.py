"""Whole models, each readable from top to bottom."""

__all__: list[str] = []
