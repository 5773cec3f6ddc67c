"""Multi-stage probe: an mjoin whose partials move between partitions (Wang and Rundensteiner 2009).

A partial visits every partition with slices that it may match, and each slice lies in one partition, so a
pair is found once. Shedding happens where a partial is made, once, and not again in each partition that it
visits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from weir.kernel.batch import Work
from weir.kernel.decision import Decision
from weir.kernel.lag_recorder import LagRecorder
from weir.kernel.output import Results
from weir.kernel.partial import Partial
from weir.kernel.path import PathRun
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.slice_index import SliceIndex
from weir.kernel.state import State
from weir.kernel.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class Parcel:
    """Partials of one driver and rank on their way to hop number `hop_number` of their path."""

    driver: str
    rank: int
    hop_number: int
    partial: Partial


class MultiStageProbe:
    """The hops of one mjoin during one batch."""

    def __init__(self, physical: PhysicalPlan, decision: Decision, batch: int) -> None:
        self._program, self._decision, self._batch = physical, decision, batch
        self._runs = {
            driver: PathRun(path, physical, decision, batch)
            for driver, path in zip(physical.root.inputs, physical.root.paths, strict=True)
        }

    def start(self, state: State, work: Work) -> Iterator[Parcel]:
        """Yield the batch's rows in a state that may probe."""
        self._record_lags(work)
        for driver, run in self._runs.items():
            slices = [s for s in state.of(driver) if s.batch == self._batch]
            if not slices:
                continue
            rows = [Partial.of(s) for s in slices]
            admitted = run.shedding(0).admit_rows(rows, work.hops[run.path[0].hop])
            for slice_, partial in zip(slices, admitted, strict=True):
                if partial.rows:
                    yield self._count_probes(Parcel(driver, slice_.rank, 0, partial), work)

    def visit(self, parcel: Parcel, state: State, work: Work) -> Iterator[Parcel]:
        """Probe the slices of one partition; yield what is found, ready for the next hop or complete."""
        run = self._runs[parcel.driver]
        hop = run.path[parcel.hop_number]
        half_join = run.half_join(parcel.hop_number, parcel.rank, SliceIndex(state.of(hop.partner.node)), {})
        counts = work.hops[hop.hop]
        probes, sampled = counts.probes, counts.sampled
        for matches in half_join.run(parcel.partial, counts):
            onward = replace(parcel, hop_number=parcel.hop_number + 1, partial=matches)
            if onward.hop_number == len(run.path):
                yield onward
                continue
            shedding = run.shedding(onward.hop_number)
            admitted = shedding.admit_partial(matches, work.hops[run.path[onward.hop_number].hop])
            if admitted.rows:
                yield self._count_probes(replace(onward, partial=admitted), work)
        # Probes were counted where they were sent from, not in each partition that they visit.
        counts.probes, counts.sampled = probes, sampled

    def wanted(self, parcel: Parcel) -> tuple[str, int, int]:
        """Return the state that a parcel probes next, and the range of lead times that it can reach there."""
        hop = self._runs[parcel.driver].path[parcel.hop_number]
        lead = TimeRange(hop.lead, parcel.partial)
        return hop.partner.node, lead.earliest, lead.latest

    def results(self, parcel: Parcel, work: Work) -> Iterator[pa.Table]:
        """Yield the results of a complete parcel."""
        self._record_lags(work)
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

    def _record_lags(self, work: Work) -> None:
        """Make sure that lags are recorded, also in partitions that send rows and emit no result."""
        work.apart = work.apart or LagRecorder.of(self._program, self._decision.allowance, self._batch)

    def _count_probes(self, parcel: Parcel, work: Work) -> Parcel:
        run = self._runs[parcel.driver]
        counts = work.hops[run.path[parcel.hop_number].hop]
        counts.probes += parcel.partial.rows
        if run.sample is not None:
            counts.sampled += run.sample.count(parcel.partial)
        return parcel
