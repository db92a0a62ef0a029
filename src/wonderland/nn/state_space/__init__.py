"""State-space models: linear recurrences as loops, sums, convolutions or scans. Book, sections 13.3 and 13.4."""
