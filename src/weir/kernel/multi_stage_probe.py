"""Run an mjoin hop by hop: partials move between partitions (PSP, Wang and Rundensteiner 2009).

What is correct: a partial visits every partition that holds slices which it may match, and each slice lies in
one partition, so a pair is found once. Who may probe is decided where a partial is made, once, and not again
at each partition that it visits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from weir.kernel.age_filter import AgeFilter
from weir.kernel.batch import Work
from weir.kernel.decision import Decision
from weir.kernel.half_join import HalfJoin
from weir.kernel.lag_recorder import LagRecorder
from weir.kernel.output import Results
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import HalfJoinPlan, PhysicalPlan
from weir.kernel.probe_sample import ProbeSample
from weir.kernel.probe_shedding import ProbeShedding
from weir.kernel.slice_index import SliceIndex
from weir.kernel.state import State
from weir.kernel.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class Parcel:
    """Partials of one driver and rank, on their way to hop number `place` of their path."""

    driver: str
    rank: int
    place: int
    partial: Partial


class Relay:
    """The root's hops during one batch, for a plan that is one mjoin."""

    def __init__(self, program: PhysicalPlan, decision: Decision, batch: int) -> None:
        self._program, self._decision, self._batch = program, decision, batch
        self._paths = dict(zip(program.root.inputs, program.root.paths, strict=True))

    def start(self, state: State, work: Work) -> Iterator[Parcel]:
        """What the batch's rows in a state send out: those that may probe."""
        self._begin(work)
        for driver, path in self._paths.items():
            slices = [one for one in state.of(driver) if one.batch == self._batch]
            gate = self._gate(path, 0)
            entered = (
                gate.enter([Partial.of(one) for one in slices], work.hops[path[0].hop]) if slices else ()
            )
            for one, partial in zip(slices, entered, strict=True):
                if partial.rows:
                    yield self._sent(Parcel(driver, one.rank, 0, partial), work)

    def visit(self, parcel: Parcel, state: State, work: Work) -> Iterator[Parcel]:
        """What a parcel finds in the slices of one partition, ready to go on; finished ones are results."""
        path = self._paths[parcel.driver]
        plan = path[parcel.place]
        sample = ProbeSample.of(self._decision.allowance, path[0].hop, self._batch)
        run = HalfJoin(
            plan,
            AgeFilter.of(self._program, self._decision.allowance, plan, sample),
            SliceIndex(state.of(plan.partner.node)),
            {},
            self._batch,
            parcel.rank,
            self._decision.candidates,
            sample,
        )
        count = work.hops[plan.hop]
        probes, sampled = count.probes, count.sampled
        for found in run.run(parcel.partial, count):
            onward = replace(parcel, place=parcel.place + 1, partial=found)
            if onward.place == len(path):
                yield onward
                continue
            passed = self._gate(path, onward.place).go_on(found, work.hops[path[onward.place].hop])
            if passed.rows:
                yield self._sent(replace(onward, partial=passed), work)
        # They were counted where they were sent from, not at each partition that they visit.
        count.probes, count.sampled = probes, sampled

    def wanted(self, parcel: Parcel) -> tuple[str, int, int]:
        """The state that a parcel probes next, and the range of lead times that it may reach there."""
        plan = self._paths[parcel.driver][parcel.place]
        lead = TimeRange(plan.lead, parcel.partial)
        return plan.partner.node, lead.least_low, lead.most_high

    def results(self, parcel: Parcel, work: Work) -> Iterator[pa.Table]:
        """The results of a finished parcel."""
        self._begin(work)
        if work.apart is not None:
            work.apart.add(parcel.partial)
        results = Results(self._program.query, self._decision, {}, self._batch)
        for chunk, stale in results.chunks(parcel.partial):
            work.stale += stale
            if results.oldest is not None:
                work.oldest = max(results.oldest, work.oldest or 0)
            work.results += chunk.num_rows
            if chunk.num_rows:
                yield chunk

    def _begin(self, work: Work) -> None:
        """Let results be counted where they are put out, and where rows set out, in case that none comes."""
        work.apart = work.apart or LagRecorder.of(self._program, self._decision.allowance, self._batch)

    def _gate(self, path: tuple[HalfJoinPlan, ...], place: int) -> ProbeShedding:
        sample = ProbeSample.of(self._decision.allowance, path[0].hop, self._batch)
        return ProbeShedding.of(self._decision.allowance, path[place].hop, self._batch, sample)

    def _sent(self, parcel: Parcel, work: Work) -> Parcel:
        path = self._paths[parcel.driver]
        count = work.hops[path[parcel.place].hop]
        count.probes += parcel.partial.rows
        sample = ProbeSample.of(self._decision.allowance, path[0].hop, self._batch)
        if sample is not None:
            count.sampled += sample.count(parcel.partial)
        return parcel
