"""Datasets, loaders that batch and shuffle them, splits, transforms, and readers of the usual file formats."""

__all__: list[str] = []
