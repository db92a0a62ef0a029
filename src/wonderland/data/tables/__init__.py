"""Tables: read from anything, understood column by column, and made into numbers by a schema that is kept."""

from .columns import ColumnSchema as ColumnSchema
from .findings import findings as findings
from .kinds import KINDS as KINDS
from .reading import is_table_source as is_table_source
from .reading import read_table as read_table
from .schema import Encoded as Encoded
from .schema import Group as Group
from .schema import Schema as Schema
from .schema import infer_schema as infer_schema
from .splits import Split as Split
from .splits import propose_split as propose_split
from .table import Column as Column
from .table import Table as Table
from .targets import TargetSchema as TargetSchema
