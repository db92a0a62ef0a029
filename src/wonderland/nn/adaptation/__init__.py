"""Changing a model that is there: adapters, fine-tuning, pruning, fusing, surgery."""
