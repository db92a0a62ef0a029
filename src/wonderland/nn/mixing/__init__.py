"""Layers that mix tokens or channels without the softmax of attention, and the block around any mixer. Book, 11.3."""
