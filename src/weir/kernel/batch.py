"""One micro-batch: build the slices, then probe for results.

What is correct: a result `(t_1..t_m)` is found exactly once, by the row of it that is processed last. Every
slice carries (batch, rank), where the rank is the place of its stream in the batch's driver order; a row sees
slices of earlier batches and, in its own batch, of lower ranks. Of two rows of one batch the one of higher
rank finds the other; ties do not exist, because rows of one rank belong to one stream, and a result has one
row of each. A partial takes the rank of the row that completed it. Expiry happens after a batch, never during
it: the ranges that each partial carries decide what joins, and a slice may only go when no range can reach it
any more. An allowance keeps rows from probing, never from being stored, so that what is found is a part of
all there is.

    rank 0   a's delta ──▶ b, c                 (earlier batches)
    rank 1   b's delta ──▶ c, a + a's delta
    rank 2   c's delta ──▶ a + a's delta, b + b's delta

`build` does all that must be stored: leaf slices, and the outputs of every join below the root. `probe` is a
pure function of the slices and may run never, once, or several times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa

from weir.kernel.age_filter import AgeFilter
from weir.kernel.decision import Decision
from weir.kernel.half_join import HalfJoin, HopWork
from weir.kernel.ingest import Ingested, ingest, key_codes
from weir.kernel.keys import Int64s, content_hash
from weir.kernel.lag_recorder import LagRecorder
from weir.kernel.output import Results
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import HalfJoinPlan, NodePlan, PhysicalPlan
from weir.kernel.probe_sample import ProbeSample
from weir.kernel.probe_shedding import ProbeShedding
from weir.kernel.row_ids import together
from weir.kernel.row_window import RowWindowOrder, latest_place, queue
from weir.kernel.slice import cut
from weir.kernel.slice_index import SliceIndex
from weir.kernel.state import State
from weir.kernel.state_schema import LINE, StateSchema
from weir.stats.batch import Hop, HopStats


@dataclass
class Work:
    """The running counts of a batch; `beside` are the hops of joins that the plan does not have."""

    hops: dict[Hop, HopWork] = field(default_factory=lambda: defaultdict(HopWork))
    results: int = 0
    stale: int = 0
    oldest: int | None = None
    apart: LagRecorder | None = None
    beside: dict[Hop, HopWork] = field(default_factory=lambda: defaultdict(HopWork))

    def per_hop(self) -> dict[Hop, HopStats]:
        """What each hop of the plan did."""
        return {hop: work.get() for hop, work in self.hops.items()}

    def per_hop_beside(self) -> dict[Hop, HopStats]:
        """What the hops did that make another plan ready."""
        return {hop: work.get() for hop, work in self.beside.items()}


def build(
    program: PhysicalPlan,
    decision: Decision,
    state: State,
    tables: Mapping[str, pa.Table],
    batch: int,
    work: Work,
) -> Ingested:
    """Take in a batch's rows and run every hop below the root; what comes back is ready to be probed."""
    ingested = ingest(program, decision, state, tables, batch)
    state = ingested.state
    for node in program.nodes[:-1]:
        hops = work.beside if node.node in program.beside else work.hops
        found = _run(node, program, decision, state, batch, hops)
        state = store(program, node, found, state, batch)
    return replace(ingested, state=state)


def probe(
    program: PhysicalPlan,
    decision: Decision,
    state: State,
    batch: int,
    work: Work,
    drivers: Collection[int] | None = None,
) -> Iterator[pa.Table]:
    """The results of a batch, in chunks, as they are found; with `drivers`, those that some slices find.

    These are named by their `id`; several calls with all slices of a batch divided among them find together
    what one call finds.
    """
    results = Results(program.query, decision, state.next_numbers, batch)
    work.apart = LagRecorder.of(program, decision.allowance, batch)
    for _, found in _run(program.root, program, decision, state, batch, work.hops, drivers):
        if work.apart is not None:
            work.apart.add(found)
        for chunk, stale in results.chunks(found):
            work.stale += stale
            work.oldest = results.oldest
            work.results += chunk.num_rows
            if chunk.num_rows:
                yield chunk


def _run(
    node: NodePlan,
    program: PhysicalPlan,
    decision: Decision,
    state: State,
    batch: int,
    hops: MutableMapping[Hop, HopWork],
    drivers: Collection[int] | None = None,
) -> Iterator[tuple[int, Partial]]:
    """Every new partial of a join, with its rank, lowest rank first."""
    shelves = {name: SliceIndex(state.of(name)) for name in node.inputs}
    queues = _queues(program, state, batch)
    new: list[tuple[int, Partial, tuple[HalfJoinPlan, ...]]] = []
    for name, path in zip(node.inputs, node.paths, strict=True):
        # Without somebody to complete a result with, no hop is worth its work.
        slices = [
            one
            for one in state.of(name)
            if one.batch == batch
            and (drivers is None or id(one) in drivers)
            and all(shelves[hop.partner.node].shows_any(batch, one.rank) for hop in path)
        ]
        hop = path[0].hop
        gate = ProbeShedding.of(
            decision.allowance, hop, batch, ProbeSample.of(decision.allowance, hop, batch)
        )
        rows = [Partial.of(one) for one in slices]
        first = gate.enter(rows, hops[hop]) if rows else rows
        new += [(one.rank, start, path) for one, start in zip(slices, first, strict=True)]
    # Slices of one rank belong to one input.
    for rank, found in groupby(sorted(new, key=lambda one: one[0]), key=lambda one: one[0]):
        starts = list(found)
        path = starts[0][2]
        sample = ProbeSample.of(decision.allowance, path[0].hop, batch)
        run = partial(
            HalfJoin, queues=queues, batch=batch, rank=rank, most=decision.candidates, sample=sample
        )
        steps = [
            _Step(
                ProbeShedding.of(decision.allowance, one.hop, batch, sample),
                run(one, AgeFilter.of(program, decision.allowance, one, sample), shelves[one.partner.node]),
                hops[one.hop],
            )
            for one in path
        ]
        rows = [one for _, one, _ in starts if one.rows]
        if sample is not None and any(one.sheds for one in steps):
            rows = _sampled_first(rows, sample)
        for longer in _entered(rows, path, steps):
            yield rank, longer


def earlier(
    path: tuple[HalfJoinPlan, ...],
    starts: Sequence[Partial],
    decision: Decision,
    state: State,
    since: int,
    hops: MutableMapping[Hop, HopWork],
) -> Iterator[Partial]:
    """All that rows find on a path through the slices of the batches before `since`, whatever is allowed."""
    steps = [
        _Step(
            ProbeShedding(one.hop, since),
            HalfJoin(
                one,
                AgeFilter(one, None, None),
                SliceIndex(state.of(one.partner.node)),
                queues={},
                batch=since,
                rank=0,
                most=decision.candidates,
            ),
            hops[one.hop],
        )
        for one in path
    ]
    return _entered(list(starts), path, steps)


@dataclass(frozen=True, slots=True)
class _Step:
    """One hop of a path: who may probe, the probing, and what is counted."""

    gate: ProbeShedding
    run: HalfJoin
    count: HopWork

    @property
    def sheds(self) -> bool:
        """True if sampled rows do more here than others."""
        return self.gate.share < 1 or self.run.is_narrow


def _sampled_first(rows: list[Partial], sample: ProbeSample) -> list[Partial]:
    """Rows that enter a path; the few that are sampled go as one, as they visit every slice."""
    marks = [sample.marks(one) for one in rows]
    sampled = [one.pick(np.flatnonzero(marked)) for one, marked in zip(rows, marks, strict=True)]
    if sum(one.rows > 0 for one in sampled) < 2:
        return rows
    others = [
        one.pick(np.flatnonzero(~marked)) if marked.any() else one
        for one, marked in zip(rows, marks, strict=True)
    ]
    return [together([one for one in sampled if one.rows]), *(one for one in others if one.rows)]


def _entered(rows: list[Partial], path: tuple[HalfJoinPlan, ...], steps: list[_Step]) -> Iterator[Partial]:
    """What rows find that have entered a path."""
    # What is costly is asked once by all rows of a rank, not by each slice again.
    if len(rows) > 1 and any(one.costly for one in path):
        rows = [together(rows)]
    return _follow(rows, steps, is_in=True)


def _follow(partials: Iterable[Partial], steps: list[_Step], is_in: bool = False) -> Iterator[Partial]:
    """Depth first, so that what is in flight is at most one run of candidates per hop."""
    if not steps:
        yield from partials
        return
    first, *rest = steps
    for rows in partials:
        onward = rows if is_in else first.gate.go_on(rows, first.count)
        yield from _follow(first.run.run(onward, first.count), rest)


def _queues(program: PhysicalPlan, state: State, batch: int) -> dict[str, RowWindowOrder]:
    """The lines of all row windows, as this batch moves them."""
    queues = {}
    for layout in program.layouts.values():
        for line in layout.lines:
            if layout.node == line.name and layout.place is not None:
                last = state.next_numbers.get(line.name, 0)
                slices = state.of(line.name + LINE) or state.of(line.name)
                queues[line.name] = queue(line, layout.place, last, slices, batch)
    return queues


def store(
    program: PhysicalPlan, node: NodePlan, found: Iterable[tuple[int, Partial]], state: State, batch: int
) -> State:
    """Keep what a join below the root finds, each with its rank, as slices of its own."""
    assert node.output is not None
    chunks: dict[int, list[dict[str, pa.Array]]] = defaultdict(list)
    for rank, rows in found:
        chunks[rank].append(_stored(node.output, rows))
    outputs = {rank: _concat(columns) for rank, columns in sorted(chunks.items())}
    state = _number(node.output, outputs, state)
    slices = []
    for rank, columns in outputs.items():
        schema = node.output.schema
        rows = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        slices += cut(node.output, program.sorts[node.node], batch, rank, rows)
    return state.adding({node.node: slices})


def _concat(chunks: list[dict[str, pa.Array]]) -> dict[str, pa.Array]:
    return {name: pa.concat_arrays([chunk[name] for chunk in chunks]) for name in chunks[0]}


def _stored(layout: StateSchema, partial: Partial) -> dict[str, pa.Array]:
    """The columns of a partial that its node keeps."""
    columns = {}
    for name in layout.times:
        columns[name] = pa.array(
            partial.numbers(name) if partial.holder(name) else _latest(partial, lambda part: (part.lead,))
        )
    for name, c in layout.keys.items():
        codes = (
            partial.numbers(name)
            if partial.holder(name)
            else key_codes(c, layout.streams, partial.fetch, partial.rows)
        )
        columns[name] = pa.array(codes)
    for name in (*layout.arrivals, *(line.number for line in layout.lines)):
        if partial.holder(name):
            columns[name] = pa.array(partial.numbers(name))
    if layout.place is not None:
        columns[layout.place] = pa.array(_latest(partial, latest_place))
    for column in layout.payload:
        columns[str(column)] = partial.fetch(column)
    return columns


def _latest(partial: Partial, names: Callable[[StateSchema], tuple[str, ...]]) -> Int64s:
    latest = partial.extreme(names, np.maximum)
    assert latest is not None
    return latest


def _number(layout: StateSchema, outputs: dict[int, dict[str, pa.Array]], state: State) -> State:
    """Number the rows of a join's own row window, by (place, content), over all ranks of the batch."""
    own = [line for line in layout.lines if line.name == layout.node]
    if not own or not outputs or layout.place is None:
        return state
    line, first = own[0], state.next_numbers.get(own[0].name, 0)
    lengths = [len(columns[layout.place]) for columns in outputs.values()]
    places = np.concatenate([columns[layout.place].to_numpy() for columns in outputs.values()])
    hashes = np.concatenate(
        [
            content_hash(list(columns.values()), length)
            for columns, length in zip(outputs.values(), lengths, strict=True)
        ]
    )
    numbers = np.empty(len(places), np.int64)
    numbers[np.lexsort((hashes, places))] = first + np.arange(len(places))
    for columns, part in zip(outputs.values(), np.split(numbers, np.cumsum(lengths)[:-1]), strict=True):
        columns[line.number] = pa.array(part)
    return replace(state, next_numbers={**state.next_numbers, line.name: first + len(places)})
