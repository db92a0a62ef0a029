"""What a run did, as one self-contained HTML page with pictures, tables, settings and versions."""

from .comparison import compare
from .diagnosis import Diagnosis, diagnose, examine
from .findings import Finding
from .writing import write

__all__ = ["write", "compare", "diagnose", "examine", "Diagnosis", "Finding"]
