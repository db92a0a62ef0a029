"""Loop kernels: everything elementwise, and reductions."""
