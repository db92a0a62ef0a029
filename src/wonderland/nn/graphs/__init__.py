"""Layers on graphs, called `layer(x, graph)`: convolutions, attention, messages, recurrence, pooling. Book, chapter 12."""
