"""Claims about speed and memory, measured: ratios from one interleaved run, the best of several rounds."""
