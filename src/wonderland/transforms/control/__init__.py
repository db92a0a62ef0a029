"""Loops and branches, as primitives that carry graphs."""
