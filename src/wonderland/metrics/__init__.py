"""Numbers that say how good predictions are; each can be updated batch by batch."""

__all__: list[str] = []
