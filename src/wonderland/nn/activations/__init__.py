"""Activations as layers, fixed and trainable."""
