"""What runs a graph: NumPy, which is the reference, and native code."""
