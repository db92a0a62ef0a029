"""Layers, one file for each family."""
