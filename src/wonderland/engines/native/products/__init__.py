"""Matrix products, with elementwise work on their results."""
