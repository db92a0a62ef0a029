"""Minima of functions: a driver, its methods, line searches, and what can be said about a point. Book, section 2.3."""

from .driver import Minimum, gradient_descent, minimize, multistart
from .landscape import (
    check_local_min,
    classify_stationary,
    convexity_counterexample,
    is_convex_sampled,
    is_descent_direction,
    steepest_direction,
)
from .lbfgs import LBFGS
from .line_search import line_search

# fmt: off
__all__ = [
    "LBFGS", "Minimum", "check_local_min", "classify_stationary", "convexity_counterexample", "gradient_descent",
    "is_convex_sampled", "is_descent_direction", "line_search", "minimize", "multistart", "steepest_direction",
]
