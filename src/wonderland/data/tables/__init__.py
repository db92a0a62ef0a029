"""Tables: read from anything, understood column by column, and made into numbers by a schema that is kept."""

from .table import Column as Column
from .table import Table as Table
