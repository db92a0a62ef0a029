"""Layers that are the solution of an equation: fixed points without the way to them. Book, section 13.2.1."""
