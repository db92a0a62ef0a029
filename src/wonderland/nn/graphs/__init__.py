"""Layers on graphs, called `layer(x, graph)`: convolutions, attention, messages, pooling. Book, chapter 12."""
