"""Layers that average over tokens without the softmax of attention: linear, free of it, RWKV. Book, 13.1, 13.4."""
