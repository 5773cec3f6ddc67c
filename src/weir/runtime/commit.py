"""Commit a batch: report what it did, and draw up the manifest that the next batch starts from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from weir.adapt.batch_report import BatchReport
from weir.adapt.recall import BatchEvidence, Recall, add_composed_windows, find_blind_joins, sum_paths
from weir.adapt.slice_summary import estimate_live_rows
from weir.kernel.decision import Decision
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.plan_migration import decide_for_plan
from weir.kernel.slice import ROWS
from weir.kernel.state import advance_watermark, is_dead
from weir.kernel.state_schema import ROW_ORDER
from weir.plan.tree import Join
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.runtime.manifest import Manifest, summarise
from weir.runtime.memory_limit import find_clocks, fit_into_memory
from weir.runtime.parking import Reach, find_reach, is_out_of_reach
from weir.runtime.partition_batch import PartitionState, SliceEntry, TaskReport, find_newest
from weir.runtime.watermark import update_last_arrivals
from weir.stats.batch_counts import BatchCounts, StateSize, count_steps
from weir.stats.weight_sums import WeightSums

# Building states for another plan is no work of the present one, and not done in every batch.
_UNUSUAL = ("migrate",)
# The phases of a task after the joins below the root: they take less time if less is probed.
_PROBING = ("probe", "results")
# Slices of fewer rows may be merged with others, for which they have to be open.
MIN_PARKED_ROWS = ROWS // 2


@dataclass(frozen=True)
class FinishedBatch:
    """A batch whose results have been emitted, before it is committed.

    `before` is the manifest it started from, `tasks` are the reports of its partitions; `is_complete` tells
    whether the sink read all results, so that all probes are counted.
    """

    number: int
    decision: Decision
    before: Manifest
    tasks: Sequence[TaskReport]
    is_complete: bool

    @property
    def active_decision(self) -> Decision | None:
        """The decision for the active plan; None if that was not the same in all partitions."""
        plans = {task.part.migration.plan for task in self.tasks if task.part.migration is not None}
        plans = plans or {self.decision.plan}
        return decide_for_plan(self.decision, plans.pop()) if len(plans) == 1 else None

    def find_active_plan(self, task: TaskReport) -> Join:
        """The plan that was active in a partition; the decided one where no batch has built anything yet."""
        return self.decision.plan if task.part.migration is None else task.part.migration.plan

    @cached_property
    def counts(self) -> BatchCounts:
        """What all partitions counted."""
        return sum((task.counts for task in self.tasks), BatchCounts())

    @property
    def newest(self) -> dict[str, int]:
        """The newest event time of each stream after the batch."""
        newest = dict(self.before.newest)
        for task in self.tasks:
            for name, time in task.newest.items():
                newest[name] = max(time, newest.get(name, time))
        return newest

    @property
    def idle(self) -> tuple[str, ...]:
        """The streams that do not hold the watermark back: silent before the batch, and in it."""
        return tuple(name for name in self.decision.idle if name not in self.counts.arrived)

    @property
    def rows_stored(self) -> dict[str, int]:
        """The rows of each stream that went into the join, once each."""
        stored, read = Counter[str](), Counter[str]()
        for task in self.tasks:
            read.update(task.counts.rows_admitted)
            for entry in task.part.slices:
                if entry.batch == self.number:
                    stored[entry.node] += entry.rows
        # `stored` is below `read` where a filter drops rows, and above it where `atr` stores copies.
        return {name: min(stored[name], count) for name, count in read.items()}


def next_manifest(
    batch: FinishedBatch, physical: PhysicalPlan, is_skewed: bool, max_bytes: int | None, parks: bool = False
) -> tuple[Manifest, Mapping[str, int]]:
    """Draw up the manifest after a batch; return it with the rows of each state that were evicted."""
    before, decision, newest = batch.before, batch.decision, batch.newest
    now = max(newest.values(), default=None)
    watermark = advance_watermark(physical, before.watermark, newest, batch.idle)
    parts = {**before.parts, **{task.partition: task.part for task in batch.tasks}}
    live = {number: _drop_dead(part, watermark) for number, part in parts.items()}
    partitions = 0 if decision.placement is None else decision.placement.partitions
    kept = {number: part for number, part in live.items() if part.slices or number < partitions}
    if parks:
        kept = _park(kept, find_reach(physical.query, physical.plan))
    # The first rows have nothing before them, from which they could have advanced.
    admitted = sum(sum(task.counts.rows_admitted.values()) for task in batch.tasks) if before.newest else 0
    advance = 0 if now is None or before.clock is None else now - before.clock
    evicted = dict[str, int]()
    if max_bytes is not None:
        lags = before.statistics.lags
        clocks = find_clocks(physical.schemas, newest, batch.idle)
        kept, evicted = fit_into_memory(kept, max_bytes, batch.number, clocks, lags)
    manifest = Manifest(
        batch=batch.number,
        watermark=watermark,
        newest=newest,
        parts=kept,
        recall=_estimate_recall(batch, physical, now, advance),
        statistics=before.statistics,
        skew=before.skew.after(admitted, advance, is_skewed),
        placement=decision.placement,
        plan=decision.plan,
        arrivals=_fresh_arrivals(batch, physical.query, now),
        last_arrivals=update_last_arrivals(
            physical.query.names, before.last_arrivals, decision.now, batch.counts.arrived
        ),
    )
    return manifest, evicted


def report_batch(
    batch: FinishedBatch, physical: PhysicalPlan, after: Manifest, evicted: Mapping[str, int], cores: int
) -> BatchReport:
    """Report what a batch did; the engine fills in how long it took.

    Where partitions had different active plans, an earlier one is shown until the last has migrated.
    """
    active, decided = batch.active_decision, batch.decision.plan
    earlier = next((plan for plan in after.active_plans if plan != decided), decided)
    decision = active or decide_for_plan(batch.decision, earlier)
    reason = "; ".join(filter(None, (decision.reason, _explain_evictions(evicted, after))))
    orders = {task.counts.order for task in batch.tasks if task.counts.order}
    seconds = [
        sum(spent for phase, spent in task.seconds.items() if phase not in _UNUSUAL) for task in batch.tasks
    ]
    # More partitions than cores take turns.
    work = max(max(seconds, default=0.0), sum(seconds) / cores)
    probing = sum(task.seconds.get(phase, 0.0) for task in batch.tasks for phase in _PROBING)
    return BatchReport(
        batch=batch.number,
        decision=replace(decision, reason=reason),
        counts=batch.counts,
        rows=batch.rows_stored,
        newest=batch.before.newest,
        reached=after.newest,
        held=estimate_live_rows(summarise(batch.before.entries), batch.before.clock),
        seconds=0.0,
        work=work,
        probing=work * probing / sum(seconds) if sum(seconds) else 0.0,
        probe_cpu=sum(_probing_seconds(task, str(decision.plan)) for task in batch.tasks),
        is_complete=batch.is_complete,
        is_mixed=active is None,
        steps=max((count_steps(task.counts.hops.values()) for task in batch.tasks), default=0),
        order=orders.pop() if len(orders) == 1 else None,
        watermark=after.watermark,
        state={**dict.fromkeys(physical.schemas, StateSize(0, 0, 0)), **after.sizes},
        batch_recall=after.recall.batch,
        windows_recall=after.recall.windows,
        evicted=evicted,
        building=_built_shares(after, decided),
    )


def _explain_evictions(evicted: Mapping[str, int], after: Manifest) -> str:
    """Say that slices are evicted, or that rows evicted earlier are missing; "" if the states are whole."""
    if any(evicted.values()):
        return "slices are evicted to keep the memory budget"
    if any(entry.is_rest for entry in after.entries):
        return "slices were evicted to keep the memory budget"
    return ""


def _probing_seconds(task: TaskReport, root: str) -> float:
    """The CPU seconds of a task's hops and results: the lower joins run while slices are built."""
    lower = sum(hop_stats.seconds for hop, hop_stats in task.counts.hops.items() if hop.node != root)
    return lower + sum(task.seconds.get(phase, 0.0) for phase in _PROBING)


def _estimate_recall(batch: FinishedBatch, physical: PhysicalPlan, now: int | None, advance: int) -> Recall:
    """Update the estimate, except from batches that were not read to the end."""
    before, counts, plan = batch.before, batch.counts, batch.decision.plan
    if not batch.is_complete:
        return before.recall
    entries = (*before.entries, *(entry for task in batch.tasks for entry in task.part.slices))
    weights = [entry.weight for entry in entries if entry.weight != 1]
    sheds = bool(weights) or counts.shed > 0 or any(hop.narrowed for hop in counts.hops.values())
    blind_root, blind_states = _find_blind(batch)
    # A join's window of so many rows stays full when rows are missing, so that it holds other rows.
    blind_states |= sheds and any(isinstance(node.window, RowWindow) for node in plan.inner())
    evidence = BatchEvidence(
        sums=_sum_weights(batch),
        largest=max(weights, default=1.0),
        sheds=sheds,
        is_blind=blind_root or blind_states,
        leaves_blind=blind_states,
        watermark=before.watermark,
        newest=now,
        advance=advance,
    )
    return before.recall.after(evidence, add_composed_windows(plan, physical.query.reach))


def _sum_weights(batch: FinishedBatch) -> WeightSums:
    tasks = ((task.counts, batch.find_active_plan(task)) for task in batch.tasks)
    return sum((sum_paths(counts.weights, plan, counts.hops) for counts, plan in tasks), WeightSums())


def _find_blind(batch: FinishedBatch) -> tuple[bool, bool]:
    """Tell whether rows that could not be found were skipped at the root, and whether states lack them."""
    roots = states = False
    for task in batch.tasks:
        plan = batch.find_active_plan(task)
        allowance = decide_for_plan(batch.decision, plan).allowance
        blind = find_blind_joins(plan, task.counts.hops, allowance)
        roots |= str(plan) in blind
        drops = {} if allowance is None else allowance.drop
        dropped = any(share >= 1 and task.counts.dropped.get(name) for name, share in drops.items())
        # The next plan's states lack what its joins left out.
        is_cut = any(work.capped for work in task.counts.migration_hops.values())
        states |= bool(blind - {str(plan)}) or dropped or is_cut
    return roots, states


def _fresh_arrivals(batch: FinishedBatch, query: Query, now: int | None) -> dict[int, int]:
    """The clocks of batches whose rows may still be fresh; the first batch has the time that it reaches."""
    longest, clock = query.longest_freshness, batch.decision.clock
    # The next batch is judged by a clock of at least this.
    latest = clock if query.clock == "wall" else now
    if longest is None or latest is None:
        return {}
    arrivals = {**batch.before.arrivals, batch.number: latest if clock is None else clock}
    return {number: arrived for number, arrived in arrivals.items() if arrived >= latest - longest}


def _built_shares(after: Manifest, plan: Join) -> dict[str, float]:
    """How much is there of each state that the plan decided needs, in the partition that has least of it."""
    shares: dict[str, float] = {}
    for part in after.parts.values():
        own = {} if part.migration is None else part.migration.measure_progress(plan)
        shares |= {node: min(share, shares.get(node, 1.0)) for node, share in own.items()}
    return shares


def _park(parts: Mapping[int, PartitionState], reach: Reach) -> dict[int, PartitionState]:
    """Park the slices that no row in the state can join yet, and no others; small ones are still merged."""
    newest = find_newest(entry for part in parts.values() for entry in part.slices)

    def mark(entry: SliceEntry) -> SliceEntry:
        waits = entry.rows >= MIN_PARKED_ROWS and is_out_of_reach(entry.node, entry.span[0], reach, newest)
        return entry if entry.parked == waits else replace(entry, parked=waits)

    return {number: replace(part, slices=tuple(map(mark, part.slices))) for number, part in parts.items()}


def _drop_dead(part: PartitionState, watermark: int | None) -> PartitionState:
    """Drop the slices that no row to come can reach, and the row-window lines that serve one batch only."""
    live = (entry for entry in part.slices if not is_dead(entry.deadline, watermark))
    return replace(part, slices=tuple(entry for entry in live if not entry.node.endswith(ROW_ORDER)))
