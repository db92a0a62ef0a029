"""Attention in one pass over its scores, forward and backward."""
