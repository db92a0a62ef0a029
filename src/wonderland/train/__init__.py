"""The training loop and the pieces it is made of: steps, callbacks, checkpoints, logs."""

__all__: list[str] = []
