"""A join in this process: all rows at once, or one batch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weir.adapt.analyse import Recommendation
from weir.adapt.controller import Controller
from weir.adapt.driver import driver_order
from weir.adapt.eviction import choose_kept
from weir.adapt.observed import Observed
from weir.adapt.recall import Recall
from weir.adapt.slice_summary import SliceSummary, live_summaries, lost_results
from weir.adapt.statistics import Statistics
from weir.errors import QueryError, unknown
from weir.kernel.batch import Work, build, probe
from weir.kernel.decision import Decision
from weir.kernel.migration_state import MigrationState
from weir.kernel.output import result_schema
from weir.kernel.plan_migration import PhysicalPlans, effort, effort_allowed, ready
from weir.kernel.state import State, commit, is_dead
from weir.local.arguments import OnNullTime, check_allowance, check_budget
from weir.local.progress import progress
from weir.local.spent import Spent
from weir.local.tables import conform, read_all
from weir.order.policies import LEARNING, DriverOrder
from weir.plan.tree import Join
from weir.query.model import Budget, Query, not_a_budget
from weir.shed.allowance import Allowance
from weir.stats.batch import BatchStats

_KEPT_PROGRESS = 100


class LocalQuery:
    """A running join: give it batches, get each batch's results.

    The same rows give the same results however they are cut into batches, as long as none comes later than
    its stream's lateness allows.
    """

    def __init__(
        self,
        query: Query,
        plan: Join,
        driver_order: DriverOrder = "auto",
        on_null_time: OnNullTime = "drop",
        controller: Controller | None = None,
    ) -> None:
        self.query = query
        self.schema = result_schema(query)
        self._programs = PhysicalPlans(query)
        self._plan = self._programs.of(plan).plan
        self._standing = MigrationState(self._plan)
        self._meanwhile: Allowance | None = None
        self._driver_order = driver_order
        self._on_null_time = on_null_time
        self._state = State()
        self._batch = 0
        self._done: list[tuple[BatchStats, Decision]] = []
        self._recall = Recall()
        self.controller = controller
        self._statistics = Statistics()
        self._gone: tuple[SliceSummary, ...] = ()
        self._deciding = 0.0
        self.allow(None)

    def __repr__(self) -> str:
        kept = sum(size.rows for size in self._state.sizes().values())
        return (
            f"<LocalQuery of {', '.join(self.query.names)}: {self._batch} batches done, {kept} rows in state>"
        )

    def allow(self, allowance: Allowance | None, reason: str = "as asked") -> None:
        """From the next batch on, how much each hop may do, and why; None is everything.

        While a query goes over to another plan, that is said of the plan that answers.
        """
        check_allowance(allowance)
        if allowance is not None:
            allowance.check(self._standing.plan)
        if self._standing.plan == self._plan:
            self._allowance = allowance
        else:
            self._meanwhile = allowance
        self._reason = reason

    def replan(self, plan: Join, allowance: Allowance | None = None, reason: str = "as asked") -> None:
        """From the next batch on, go over to another plan, and say why; no result is lost or comes twice.

        Until the states that it needs are there, which may take some batches, the plan before it answers, and
        what each of its hops may do stays as it was; the allowance is for the new plan.
        """
        check_allowance(allowance)
        if not isinstance(plan, Join):
            raise QueryError(f"a plan is made with weir.plan.join; got {plan!r}")
        self._programs.check_change(self._standing.plan, plan)
        if allowance is not None:
            allowance.check(plan)
        if self._standing.plan == self._plan:
            self._meanwhile = self._allowance
        self._plan, self._allowance, self._reason = plan, allowance, reason

    def process(self, batch: Mapping[str, Any] | None = None, /, **tables: Any) -> pa.Table:
        """Take in one batch, `process(orders=table, payments=table)`, and return the results it completes."""
        return pa.concat_tables([self.schema.empty_table(), *self.chunks(self._merged(batch, tables))])

    def chunks(self, batch: Mapping[str, Any]) -> Iterator[pa.Table]:
        """The same in pieces, as they are found; the batch counts once the last piece has been taken."""
        started, spent = perf_counter(), Spent()
        verdict = None if self.controller is None else self.controller.decide()
        if verdict is not None:
            self._actuate(verdict)
        spent.lap("decide")
        rows = self._conform(batch)
        clock = self._clock(rows)
        work = Work()
        wanted = Decision(
            plan=self._plan,
            driver_order=self._driver_order,
            clock=clock,
            allowance=self._allowance,
            selectivities=self.statistics.selectivities(self._plan),
            gains=self.statistics.gains,
            reason=self._reason,
            meanwhile=self._meanwhile,
            effort=effort_allowed(0 if self.stats is None else effort(self.stats.per_hop.values())),
        )
        spent.lap("read")
        found = ready(self._programs, self._standing, self._state, wanted, self._batch, work)
        program, plan, allowance = found.program, found.decision.plan, found.decision.allowance
        # By the plan that answers, and what is skipped in it.
        order = driver_order(self._driver_order, plan, allowance, self.statistics.lags)
        decision = replace(found.decision, driver_order=order)
        spent.lap("ready")
        newest, held = self._state.newest, _held(found.state) if self._learns else []
        before, watermark = max(newest.values(), default=None), self._state.watermark
        spent.lap("observe")
        built = build(program, decision, found.state, rows, self._batch, work)
        produced: list[tuple[float, int]] = []
        for chunk in probe(program, decision, built.state, self._batch, work):
            produced.append((perf_counter() - started, chunk.num_rows))
            spent.lap("join")
            yield chunk
            spent.lap("elsewhere")
        self._state = commit(program, built.state, allowance, found.standing.since)
        self._standing = found.standing
        spent.lap("join")
        per_hop = work.per_hop()
        lost = lost_results(self._gone, held, before, self.statistics.lags)
        self._recall = self._recall.after(
            plan, per_hop, allowance, lost, (watermark, clock), self.query.reach
        )
        let_go = self._let_go(clock)
        sizes = self._state.sizes()
        self._remember(
            BatchStats(
                batch=self._batch,
                rows_in=built.rows_in,
                late=built.late,
                null_time=built.null_time,
                dropped=built.dropped,
                lags=None if work.apart is None else work.apart.get(),
                results=work.results,
                stale=work.stale,
                per_hop=per_hop,
                state=sizes,
                watermark=self._state.watermark,
                seconds=perf_counter() - started,
                estimated_recall=self._recall.estimate(plan),
                order=built.order,
                produced=tuple(produced),
                per_hop_beside=work.per_hop_beside(),
                building=found.standing.shares(wanted.plan),
                oldest=work.oldest,
                let_go=let_go,
                deciding=self._deciding + spent.seconds["decide"],
            ),
            decision,
        )
        if self._learns:
            self._observe(
                Observed(
                    plan=plan,
                    allowance=allowance,
                    rows={name: _came(built.state, name, self._batch) for name in rows},
                    newest=newest,
                    reached=self._state.newest,
                    per_hop=per_hop,
                    held=live_summaries(held, before),
                    # What making another plan ready took is neither work of this one nor paid in every batch.
                    seconds=sum(spent.seconds[part] for part in ("decide", "read", "observe", "join")),
                    work=spent.seconds["join"],
                    order=built.order,
                    watermark=self._state.watermark,
                    state=sizes,
                    results=work.results,
                    lags=None if work.apart is None else work.apart.get(),
                    oldest=work.oldest,
                    recall=self._recall.estimate(plan),
                )
            )
        spent.lap("observe")
        self._deciding = spent.seconds["observe"]
        self._batch += 1

    @property
    def plan(self) -> Join:
        """The plan that answers; while another one is made ready, still the one before it."""
        return self._standing.plan

    @property
    def statistics(self) -> Statistics:
        """What is known of the streams; nothing, if neither adaptation nor the driver order asks for it."""
        return self._statistics if self.controller is None else self.controller.statistics

    @property
    def budget(self) -> Budget | None:
        """What the query may use; a new one counts from the next batch on, if the query adapts."""
        return self.query.budget if self.controller is None else self.controller.budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        if self.controller is None:
            raise QueryError("the budget of a query that does not adapt is fixed; start it with adapt=True")
        if not isinstance(budget, Budget):
            raise not_a_budget(budget)
        check_budget(budget)
        self.controller.budget = budget

    @property
    def state(self) -> State:
        """What is kept for the batches to come."""
        return self._state

    @property
    def stats(self) -> BatchStats | None:
        """What the last batch did; None before the first."""
        return self._done[-1][0] if self._done else None

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The last batch in Spark's words; None before the first."""
        return progress(*self._done[-1]) if self._done else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 - Spark's name
        """The last hundred batches in Spark's words."""
        return [progress(stats, decision) for stats, decision in self._done]

    @property
    def _learns(self) -> bool:
        """True if batches are watched: to adapt, or for the driver order."""
        return self.controller is not None or self._driver_order in LEARNING

    def _actuate(self, verdict: Recommendation) -> None:
        """Go by what was found to be best; another plan takes over when its states are there."""
        if verdict.plan == self._standing.plan:
            self.allow(verdict.allowance, verdict.reason)
        else:
            self.replan(verdict.plan, verdict.allowance, verdict.reason)

    def _observe(self, seen: Observed) -> None:
        if self.controller is None:
            self._statistics = self._statistics.after(self.query, seen)
        else:
            self.controller.observe(seen)

    def _let_go(self, clock: int | None) -> dict[str, int]:
        """Give up slices so that the others fit into the budget; how many rows of each state that were."""
        allowed = None if self.controller is None else self.controller.budget.bytes
        self._gone = tuple(one for one in self._gone if not is_dead(one.deadline, clock))
        if allowed is None:
            return {}
        slices = [one for found in self._state.slices.values() for one in found]
        held = [SliceSummary.of(one) for one in slices]
        kept = choose_kept(held, allowed, clock, self.statistics.lags)
        if all(kept):
            return {}
        gone = [one for one, stays in zip(held, kept, strict=True) if not stays]
        lost = {id(one) for one, stays in zip(slices, kept, strict=True) if not stays}
        left = {n: tuple(s for s in found if id(s) not in lost) for n, found in self._state.slices.items()}
        self._state, self._gone = replace(self._state, slices=left), (*self._gone, *gone)
        return dict(sum((Counter({one.node: one.rows}) for one in gone), Counter()))

    def _merged(self, batch: Any, tables: Mapping[str, Any]) -> dict[str, Any]:
        if batch is not None and not isinstance(batch, Mapping):
            one = self.query.names[0]
            raise QueryError(
                f"process takes its tables by name, like process({one}=table) "
                f"or process({{'{one}': table}}); got {type(batch).__name__}"
            )
        for name in batch or ():
            if name in tables:
                raise _twice(name)
        return {**(batch or {}), **tables}

    def _conform(self, batch: Mapping[str, Any]) -> dict[str, pa.Table]:
        spelled = {name.lower(): name for name in self.query.names}
        named: dict[str, Any] = {}
        for given, table in batch.items():
            name = spelled.get(str(given).lower())
            if name is None:
                raise unknown("stream", str(given), self.query.names)
            if name in named:
                raise _twice(name)
            named[name] = table
        rows = {name: conform(self.query.stream(name), table) for name, table in read_all(named).items()}
        if self._on_null_time == "fail":
            self._check_times(rows)
        return rows

    def _check_times(self, rows: Mapping[str, pa.Table]) -> None:
        for name, table in rows.items():
            time = self.query.stream(name).time
            missing = table.column(time).null_count
            if missing:
                raise QueryError(
                    f"stream '{name}' has {missing} row{'s' * (missing != 1)} without a time ('{time}' is "
                    "NULL); fill it in, or pass on_null_time='drop' to leave such rows out"
                )

    def _clock(self, rows: Mapping[str, pa.Table]) -> int | None:
        """The newest event time seen, this batch included."""
        times = [pc.max(table.column(self.query.stream(name).time)) for name, table in rows.items()]
        seen = [*self._state.newest.values(), *(time.value for time in times if time.is_valid)]
        return max(seen, default=None)

    def _remember(self, stats: BatchStats, decision: Decision) -> None:
        self._done = [*self._done[-_KEPT_PROGRESS + 1 :], (stats, decision)]


def _held(state: State) -> list[SliceSummary]:
    return [SliceSummary.of(one) for found in state.slices.values() for one in found]


def _came(state: State, name: str, batch: int) -> int:
    """The rows of a stream that entered its state with a batch."""
    return sum(one.rows for one in state.of(name) if one.batch == batch)


def _twice(name: str) -> QueryError:
    return QueryError(f"a batch of stream '{name}' is given twice")
