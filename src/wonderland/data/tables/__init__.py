"""Tables: read from anything, understood column by column, and made into numbers by a schema that is kept."""

from .reading import is_table_source as is_table_source
from .reading import read_table as read_table
from .table import Column as Column
from .table import Table as Table
