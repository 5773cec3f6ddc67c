"""A join over tables of this process, as `weir.join` returns it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from weir.adapt.planner import PlannedJoin, explain_plan
from weir.adapt.shedding import AS_REQUESTED
from weir.errors import QueryError, unknown_name
from weir.kernel.output import result_schema
from weir.local.query import LocalQuery
from weir.local.tables import read_all, read_schema
from weir.options import JoinOptions, check_budget
from weir.plan.explain import render_mermaid
from weir.query.build import build_query
from weir.query.describe import describe
from weir.query.model import Query
from weir.query.sql import name_streams
from weir.runtime.decide import DecidedPlan, Policy

_SPARK_MODES = ("simple", "extended", "codegen", "cost", "formatted")


class LocalJoin:
    """A join that is defined: `to_arrow()` runs it over its tables, `start()` batch by batch."""

    def __init__(
        self, query: Query, planned: PlannedJoin, tables: Mapping[str, Any], options: JoinOptions
    ) -> None:
        if options.allowance is not None:
            options.allowance.check(planned.plan)
        self.query, self.planned = query, planned
        self._tables, self._options = tables, options
        self._driver_order = options.order_streams(query)

    def __repr__(self) -> str:
        columns = ", ".join(output.name for output in self.query.select)
        return f"<LocalJoin of {', '.join(self.query.names)}: {columns}>"

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        return result_schema(self.query)

    def to_arrow(self) -> pa.Table:
        """Every result over the tables given, in one batch."""
        for name, table in self._tables.items():
            if isinstance(table, pa.Schema):
                raise QueryError(
                    f"stream '{name}' was given as a schema, so there are no rows to join; "
                    "give a table, or use start() and process(...) to bring rows in batches"
                )
        return self.start().process(self._tables)

    def start(self) -> LocalQuery:
        """Start the join with empty state; the tables only name the columns, rows come by `process`."""
        plan, options, adapt = self.planned.plan, self._options, self._options.adaptation
        allowance, reason = options.allowance, AS_REQUESTED
        if allowance is None:
            allowance, reason = self.planned.start(self.query, adapt, plan)
        policy = Policy(self.query, self._driver_order, adapt=adapt, scope=self.planned.scope(self.query))
        return LocalQuery(policy, DecidedPlan(plan, allowance, reason), options.on_null_time)

    def explain(self, mode: str | bool | None = None) -> None:
        """Print the query and its plan, or with "mermaid" the plan as a chart; any mode of Spark's does."""
        if isinstance(mode, str) and mode.lower() not in (*_SPARK_MODES, "mermaid"):
            raise unknown_name("mode", mode, (*_SPARK_MODES, "mermaid"), where=" in explain")
        if not isinstance(mode, str | bool | None):
            raise QueryError(f"the mode of explain is a word like 'simple'; got {mode!r}")
        is_chart = str(mode).lower() == "mermaid"
        print(render_mermaid(self.planned.plan, self.planned.cost) if is_chart else self.explanation())

    def explanation(self) -> str:
        """What `explain` prints."""
        return f"{describe(self.query)}\n\n{explain_plan(self.planned, self._options.allowance)}"


def build_join(given: Mapping[str, Any], options: JoinOptions) -> LocalJoin:
    """The join of tables of this process."""
    options.refuse_spark_arguments()
    check_budget(options.budget)
    tables = name_streams(read_all(given), options.statement)
    schemas = {name: read_schema(name, table) for name, table in tables.items()}
    request = options.plan_request
    query = request.divide_windows(build_query(schemas, options))
    return LocalJoin(query, request.plan_join(query, tables), tables, options)
