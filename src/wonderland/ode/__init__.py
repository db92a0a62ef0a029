"""Ordinary differential equations: solvers that can be differentiated, and the adjoint method. Book, section 9.4.2."""

from .adjoint import odeint_adjoint
from .integration import odeint
from .tableaus import METHODS, Tableau

__all__ = ["METHODS", "Tableau", "odeint", "odeint_adjoint"]
