"""Past one machine: programs for accelerators elsewhere. Needs the extra `xla`; see docs/scale.md."""
