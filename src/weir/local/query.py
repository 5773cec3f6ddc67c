"""A join in this process: all rows at once, or one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from weir.adapt.batch_report import BatchReport
from weir.adapt.controller import Controller
from weir.adapt.shedding import AS_REQUESTED
from weir.adapt.statistics import Statistics
from weir.errors import QueryError, match_name
from weir.kernel.output import result_schema
from weir.kernel.plan_migration import PhysicalPlans
from weir.kernel.state import State
from weir.local.engine import LocalEngine, Memory
from weir.local.formats import convert, find_common_format
from weir.local.hints import QUERY_HINTS, missing_attribute
from weir.local.inputs import Input, read_inputs
from weir.local.tables import conform
from weir.options import OnNullTime, check_allowance, check_budget
from weir.plan.tree import Join
from weir.query.model import Budget
from weir.runtime.decide import DecidedPlan, Decider, Policy
from weir.runtime.manifest import Manifest
from weir.runtime.micro_batch import MicroBatches
from weir.shed.allowance import Allowance

_RECENT = 100


class LocalQuery:
    """A running join: give it batches, get each batch's results.

    The same rows give the same results however they are cut into batches, as long as none comes later than
    its stream's lateness allows.
    """

    def __init__(self, policy: Policy, start: DecidedPlan, on_null_time: OnNullTime = "drop") -> None:
        self.query, self.schema = policy.query, result_schema(policy.query)
        self._next = 0
        self._memory = Memory()
        self._engine = LocalEngine(self._memory, policy.query)
        self._plans = PhysicalPlans(policy.query)
        self._plans.of(start.plan)  # a plan that cannot run is refused here, not with the first batch
        self._decider = Decider(policy, start, self._plans, self._memory, self._engine)
        self._batches = MicroBatches(self._engine, self._memory, self._decider, self._plans, on_null_time)
        self._plan = start.plan

    def __repr__(self) -> str:
        names, kept = ", ".join(self.query.names), sum(size.rows for size in self.manifest.sizes.values())
        return f"<LocalQuery of {names}: {self._next} batches done, {kept} rows in state>"

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute("a running query in one process", name, dir(type(self)), QUERY_HINTS)

    def allow(self, allowance: Allowance | None, reason: str = AS_REQUESTED) -> None:
        """From the next batch on, bound how much each hop may do, and say why; None means everything.

        While the query migrates to another plan, this concerns the active one.
        """
        check_allowance(allowance)
        self._decider.allow(allowance, reason, self.plan)

    def replan(self, plan: Join, allowance: Allowance | None = None, reason: str = AS_REQUESTED) -> None:
        """From the next batch on, migrate to another plan, and say why; no result is lost or comes twice.

        Until the states that it needs are built, which may take some batches, the plan before it is active,
        and what each of its hops may do stays as it was; the allowance is for the new plan.
        """
        check_allowance(allowance)
        self._decider.replan(plan, allowance, reason)

    def process(self, batch: Mapping[str, Any] | None = None, /, **tables: Any) -> pa.Table:
        """Take in one batch, `process(orders=table, payments=table)`, and return the results it completes.

        Tables, rows and iterators are as for `weir.join`. An iterator is read to its end; if the batch fails,
        give a new one.
        """
        return self._process(self._read(self._merge(batch, tables)))

    def collect(self, batch: Mapping[str, Any] | None = None, /, **tables: Any) -> Any:
        """Do as `process`, and return the results in the format in which the tables came in."""
        inputs = self._read(self._merge(batch, tables))
        return convert(self._process(inputs), find_common_format(each.format for each in inputs.values()))

    def chunks(self, batch: Mapping[str, Any]) -> Iterator[pa.Table]:
        """Do as `process`, in pieces as they are found; the batch counts once the last one has been taken."""
        return self._chunks(self._read(batch))

    def _process(self, inputs: Mapping[str, Input]) -> pa.Table:
        return pa.concat_tables([self.schema.empty_table(), *self._chunks(inputs)])

    def _chunks(self, inputs: Mapping[str, Input]) -> Iterator[pa.Table]:
        tables = {name: conform(self.query.stream(name), each.table) for name, each in inputs.items()}
        yield from self._batches.run(tables, self._next)
        self._next += 1

    @property
    def plan(self) -> Join:
        """The active plan; while the query migrates to another one, still the one before it."""
        return next(iter(self.manifest.active_plans), self._plan)

    @property
    def manifest(self) -> Manifest:
        """What the next batch starts from."""
        return self._memory.manifest

    @property
    def controller(self) -> Controller | None:
        """What adapts the query; None if nothing does, or before the first batch."""
        return self._decider.controller

    @property
    def statistics(self) -> Statistics:
        """What is known of the streams; nothing, if neither adaptation nor the driver order asks for it."""
        return self.manifest.statistics if self.controller is None else self.controller.statistics

    @property
    def budget(self) -> Budget | None:
        """What the query may use; a new one counts from the next batch on, if the query adapts."""
        return self._decider.budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        if isinstance(budget, Budget):
            check_budget(budget)
        self._decider.budget = budget

    @property
    def state(self) -> State:
        """What is kept for the batches to come."""
        return self._engine.load(self.manifest, self._plans.of(self.plan))

    @property
    def quarantined(self) -> pa.Table:
        """The rows that the last batch left out with `on_error="quarantine"`: a thousand of them at most.

        Each shows the expression, the error, and the event time and the columns read of each stream's row.
        `lastProgress["weir"]["numRowsQuarantined"]` counts them all.
        """
        return self._engine.quarantined

    @property
    def last_report(self) -> BatchReport | None:
        """What the last batch did; None before the first."""
        return self._batches.last_report

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The last batch in Spark's words; None before the first."""
        return self._describe(self._next - 1) if self._next else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 - Spark's name
        """The last hundred batches in Spark's words."""
        return [self._describe(number) for number in list(self._batches.progress)[-_RECENT:]]

    def _describe(self, number: int) -> dict[str, Any]:
        section = self._batches.progress[number]
        rows = sum(stream["numInputRows"] for stream in section["streams"].values())
        return {"batchId": number, "numInputRows": rows, "weir": section}

    def _merge(self, batch: Any, tables: Mapping[str, Any]) -> dict[str, Any]:
        if batch is not None and not isinstance(batch, Mapping):
            name = self.query.names[0]
            raise QueryError(
                f"process takes its tables by name, like process({name}=table) "
                f"or process({{'{name}': table}}); got {type(batch).__name__}"
            )
        for name in batch or ():
            if name in tables:
                raise _given_twice(name)
        return {**(batch or {}), **tables}

    def _name(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for given, table in batch.items():
            name = match_name("stream", str(given), self.query.names)
            if name in named:
                raise _given_twice(name)
            named[name] = table
        return named

    def _read(self, batch: Mapping[str, Any]) -> dict[str, Input]:
        named = self._name(batch)
        return read_inputs(named, {name: self.query.stream(name).schema for name in named})


def _given_twice(name: str) -> QueryError:
    return QueryError(f"a batch of stream '{name}' is given twice")
