"""Tables: read from anything, understood column by column, and made into numbers by a schema that is kept."""

from .columns import ColumnSchema as ColumnSchema
from .kinds import KINDS as KINDS
from .reading import is_table_source as is_table_source
from .reading import read_table as read_table
from .schema import Encoded as Encoded
from .schema import Group as Group
from .schema import Schema as Schema
from .schema import infer_schema as infer_schema
from .table import Column as Column
from .table import Table as Table
from .targets import TargetSchema as TargetSchema
