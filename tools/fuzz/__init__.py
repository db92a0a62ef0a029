"""Random programs and damaged files: `python -m tools.fuzz`."""
