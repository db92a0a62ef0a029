"""Graphs on XLA, through JAX's public API: the road to GPUs, TPUs and meshes of them. Needs the extra `xla`."""
