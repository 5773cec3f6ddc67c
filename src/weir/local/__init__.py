"""How does it run in one process?"""

from weir.local.join import LocalJoin
from weir.local.query import LocalQuery
from weir.local.tables import is_table, read_all, read_schema, read_table

__all__ = ["LocalJoin", "LocalQuery", "is_table", "read_all", "read_schema", "read_table"]
