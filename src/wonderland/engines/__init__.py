"""What runs a graph: NumPy, which is the reference, native code, and XLA."""
