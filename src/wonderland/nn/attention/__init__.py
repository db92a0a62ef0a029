"""Attention as layers: heads, positions, blocks, and what is built from them. Book, chapters 10 and 11."""
