"""The reference: graphs evaluated with NumPy, operation by operation."""
