"""Parse INTERVAL literals to microseconds."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from weir.errors import QueryError
from weir.expr.nodes import Literal
from weir.expr.types import INTERVAL
from weir.units import parse_interval


def parse_interval_literal(node: Any) -> Literal:
    """Parse `INTERVAL 5 MINUTES`, `INTERVAL '1 hour 30 minutes'` or `INTERVAL -'5' SECOND`."""
    amount, unit = node.this, node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        raise QueryError(
            f"write the interval with its units, e.g. INTERVAL '1 day 2 hours', not {node.sql('spark')}"
        )
    sign = 1
    while isinstance(amount, (exp.Neg, exp.Paren)):
        sign, amount = (-sign if isinstance(amount, exp.Neg) else sign), amount.this
    if not isinstance(amount, exp.Literal):
        raise QueryError(
            f"an interval takes a constant, not {node.sql('spark')}; multiply: x * INTERVAL 1 SECOND"
        )
    return Literal(sign * _microseconds(amount.this.strip(), unit.name if unit else ""), INTERVAL)


def _microseconds(amount: str, unit: str) -> int:
    if amount.startswith("-") and unit:
        return -parse_interval(f"{amount[1:]} {unit}")
    return parse_interval(f"{amount} {unit}".strip())
