"""A join over tables of this process, as `weir.join` returns it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from weir.adapt.planner import PlannedJoin, chart_plan, explain_plan
from weir.adapt.settings import Adapt
from weir.adapt.shedding import AS_ASKED
from weir.errors import QueryError, unknown
from weir.kernel.output import result_schema
from weir.local.arguments import OnNullTime
from weir.local.query import LocalQuery
from weir.order.policies import DriverOrder
from weir.query.describe import describe
from weir.query.model import Query
from weir.runtime.decide import DecidedPlan, Policy
from weir.shed.allowance import Allowance

_SPARK_MODES = ("simple", "extended", "codegen", "cost", "formatted")


class LocalJoin:
    """A join that has been asked for; `to_arrow()` runs it over its tables, `start()` batch by batch."""

    def __init__(
        self,
        query: Query,
        planned: PlannedJoin,
        tables: Mapping[str, Any],
        driver_order: DriverOrder = "auto",
        on_null_time: OnNullTime = "drop",
        allowance: Allowance | None = None,
        adapt: Adapt | None = None,
    ) -> None:
        if allowance is not None:
            allowance.check(planned.plan)
        self.query = query
        self.planned = planned
        self._tables = tables
        self._driver_order = driver_order
        self._on_null_time = on_null_time
        self._allowance = allowance
        self._adapt = adapt

    def __repr__(self) -> str:
        columns = ", ".join(output.name for output in self.query.select)
        return f"<LocalJoin of {', '.join(self.query.names)}: {columns}>"

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return result_schema(self.query)

    def to_arrow(self) -> pa.Table:
        """Every result over the tables given, in one batch."""
        promised = [name for name, table in self._tables.items() if isinstance(table, pa.Schema)]
        if promised:
            raise QueryError(
                f"stream '{promised[0]}' was given as a schema, so there are no rows to join; "
                "give a table, or use start() and process(...) to bring rows in batches"
            )
        return self.start().process(self._tables)

    def start(self) -> LocalQuery:
        """The join with nothing in it yet; the tables given only name the columns, rows come by `process`."""
        plan, allowance, reason = self.planned.plan, self._allowance, AS_ASKED
        if allowance is None:
            allowance, reason = self.planned.start(self.query, self._adapt, plan)
        policy = Policy(
            self.query, self._driver_order, adapt=self._adapt, scope=self.planned.scope(self.query)
        )
        return LocalQuery(policy, DecidedPlan(plan, allowance, reason), self._on_null_time)

    def explain(self, mode: str | bool | None = None) -> None:
        """Print what is asked and how it is answered, or with "mermaid" the plan as a chart.

        Spark's modes are known and all print the same.
        """
        if isinstance(mode, str) and mode.lower() not in (*_SPARK_MODES, "mermaid"):
            raise unknown("mode", mode, (*_SPARK_MODES, "mermaid"), where=" in explain")
        if not isinstance(mode, str | bool | None):
            raise QueryError(f"the mode of explain is a word like 'simple'; got {mode!r}")
        print(chart_plan(self.planned) if str(mode).lower() == "mermaid" else self.explanation())

    def explanation(self) -> str:
        """What `explain` prints."""
        return f"{describe(self.query)}\n\n{explain_plan(self.planned, self._allowance)}"
