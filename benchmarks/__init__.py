"""Claims about speed and memory, measured: every figure is a ratio from one interleaved run, the best of several rounds."""
