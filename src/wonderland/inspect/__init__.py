"""What a function costs and does: explain, count, saved, numerical derivatives, checks of gradients."""
