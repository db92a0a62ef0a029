"""Looking into models: diagnostics, linting, receptive fields, regions, summaries, symmetries."""
