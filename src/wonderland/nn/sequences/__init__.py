"""What all layers over sequences share: which tokens are real, and what is kept of those that were read."""
