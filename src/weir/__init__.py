"""Join many streams inside windows, with any predicate, within the CPU, memory and freshness given."""

from typing import TYPE_CHECKING

from weir.lazy import lazy_names

if TYPE_CHECKING:
    from weir import plan
    from weir.adapt.settings import Adapt
    from weir.api import join, sql
    from weir.errors import EvaluationError, QueryError
    from weir.expr.scope import udf
    from weir.query.model import Budget
    from weir.query.windows import rows
    from weir.shed.ages import Ages
    from weir.shed.allowance import Allowance

__all__ = [
    "Adapt",
    "Ages",
    "Allowance",
    "Budget",
    "EvaluationError",
    "QueryError",
    "join",
    "plan",
    "rows",
    "sql",
    "udf",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Adapt": "weir.adapt.settings",
        "Ages": "weir.shed.ages",
        "Allowance": "weir.shed.allowance",
        "Budget": "weir.query.model",
        "EvaluationError": "weir.errors",
        "QueryError": "weir.errors",
        "join": "weir.api",
        "plan": "weir.plan",
        "rows": "weir.query.windows",
        "sql": "weir.api",
        "udf": "weir.expr.scope",
    },
)


def __dir__() -> list[str]:
    return __all__
