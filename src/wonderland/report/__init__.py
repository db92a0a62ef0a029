"""What a run did, as one self-contained HTML page with pictures, tables, settings and versions."""

from .comparison import compare
from .writing import write

__all__ = ["write", "compare"]
