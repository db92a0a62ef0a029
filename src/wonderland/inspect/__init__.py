"""What a function costs and does: explain, collectives, count, saved, numerical derivatives, checks of gradients."""
