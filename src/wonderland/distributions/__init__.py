"""Probability distributions: `sample`, `log_prob`, moments, entropy and divergences; Bayes' rule. Book, appendix A."""

__all__: list[str] = []
