"""Recurrent networks: cells, which are one step, what runs them along sequences, and PyTorch's layers. Book, 13.2."""
