"""Inputs that are changed as little as possible to mislead a model, and training against them."""
