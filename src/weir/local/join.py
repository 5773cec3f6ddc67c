"""A join over tables of this process, as `weir.join` returns it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weir.adapt.planner import PlannedJoin, explain_plan
from weir.adapt.shedding import AS_REQUESTED
from weir.errors import QueryError, unknown_name
from weir.expr.types import spark_name
from weir.kernel.output import result_schema
from weir.local.formats import convert, find_common_format, to_pandas, to_polars
from weir.local.hints import JOIN_HINTS, missing_attribute
from weir.local.inputs import Input, read_inputs
from weir.local.query import LocalQuery
from weir.local.tables import conform
from weir.options import JoinOptions, check_budget
from weir.plan.explain import render_mermaid
from weir.query.build import build_query, refuse_internal_names
from weir.query.describe import describe
from weir.query.model import Query
from weir.query.sql import name_streams
from weir.runtime.decide import DecidedPlan, Policy
from weir.runtime.wall_clock import read_wall_clock

if TYPE_CHECKING:
    import polars as pl

_SPARK_MODES = ("simple", "extended", "codegen", "cost", "formatted")


class LocalJoin:
    """A join that is defined: `collect()` runs it over its tables, `start()` batch by batch.

    `collect()` gives the results in the format in which the tables came in; `to_arrow()`, `to_polars()` and
    `to_pandas()` in the one you choose.
    """

    def __init__(
        self, query: Query, planned: PlannedJoin, inputs: Mapping[str, Input], options: JoinOptions
    ) -> None:
        if options.allowance is not None:
            options.allowance.check(planned.plan)
        self.query, self.planned = query, planned
        self._inputs, self._options = inputs, options
        self._driver_order = options.order_streams(query)
        self._last: LocalQuery | None = None

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {spark_name(field.type)}" for field in self.schema)
        run = "collect(), to_arrow(), to_polars() or to_pandas()" if self._has_rows else "start()"
        return f"<LocalJoin of {', '.join(self.query.names)} [{columns}]; run it with {run}>"

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute("a join in one process", name, dir(type(self)), JOIN_HINTS)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        return result_schema(self.query)

    @property
    def columns(self) -> list[str]:
        """The names of the results' columns."""
        return list(self.schema.names)

    def collect(self) -> Any:
        """Every result, in the format in which the tables came in.

        This is a Polars DataFrame if all tables are Polars DataFrames or LazyFrames, a pandas DataFrame if
        all are pandas, a list of dicts if all are rows that are dicts, and otherwise an Arrow table.
        """
        return convert(self.to_arrow(), find_common_format(each.format for each in self._inputs.values()))

    def to_arrow(self) -> pa.Table:
        """Every result over the tables given, in one batch."""
        self._last = self.start()
        return self._last.process({name: given.table for name, given in self._inputs.items()})

    @property
    def quarantined(self) -> pa.Table:
        """What the last evaluation left out with `on_error="quarantine"`; see `LocalQuery.quarantined`."""
        if self._last is None:
            raise QueryError("nothing was evaluated yet; call collect() or to_arrow(), then read quarantined")
        return self._last.quarantined

    def to_polars(self) -> pl.DataFrame:
        """Every result as a Polars DataFrame."""
        return to_polars(self.to_arrow())

    def to_pandas(self) -> Any:
        """Every result as a pandas DataFrame."""
        return to_pandas(self.to_arrow())

    def start(self) -> LocalQuery:
        """Start the join with empty state; the tables only name the columns, rows come by `process`."""
        plan, options, adapt = self.planned.plan, self._options, self._options.adaptation
        allowance, reason = options.allowance, AS_REQUESTED
        if allowance is None:
            allowance, reason = self.planned.start(self.query, adapt, plan)
        policy = Policy(
            query=self.query,
            driver_order=self._driver_order,
            wall_clock=read_wall_clock if self.query.clock == "wall" else None,
            adapt=adapt,
            scope=self.planned.scope(self.query),
            keeps_dropped=options.on_error == "quarantine",
            knows_rates=options.rates is not None,
        )
        return LocalQuery(policy, DecidedPlan(plan, allowance, reason), options.on_null_time)

    @property
    def _has_rows(self) -> bool:
        return all(each.has_rows for each in self._inputs.values())

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
    inputs = name_streams(read_inputs(given), options.statement)
    request = options.plan_request
    schemas = {name: each.schema for name, each in inputs.items()}
    refuse_internal_names(schemas)
    query = request.divide_windows(build_query(schemas, options))
    measured = inputs if request.needs_rates(query) else {}
    tables = {n: conform(query.stream(n), each.table) for n, each in measured.items() if each.has_rows}
    return LocalJoin(query, request.plan_join(query, tables), inputs, options)
