"""Convolutions and their two gradients."""
