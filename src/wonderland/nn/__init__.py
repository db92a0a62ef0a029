"""What models are made of: modules with parameters, and their containers. A file per family."""

from ..context import structure_version
from .containers import ModuleDict, ModuleList, Sequential
from .functional_call import functional_call
from .hooks import Hook
from .lazy import Lazy, at_once
from .linear import LazyLinear, Linear
from .module import Module
from .parameter import Buffer, Parameter
from .summary import Summary, summary

__all__ = [
    "Module",
    "Parameter",
    "Buffer",
    "Lazy",
    "at_once",
    "Sequential",
    "ModuleList",
    "ModuleDict",
    "Linear",
    "LazyLinear",
    "functional_call",
    "summary",
    "Summary",
    "Hook",
    "structure_version",
]
