"""Join many streams inside windows, with any predicate, within the CPU, memory and freshness given."""

from weir.adapt.settings import Adapt
from weir.api import join, sql
from weir.errors import QueryError
from weir.expr.scope import udf
from weir.query.model import Budget
from weir.query.windows import rows
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance

__all__ = ["Adapt", "Ages", "Allowance", "Budget", "QueryError", "join", "rows", "sql", "udf"]
