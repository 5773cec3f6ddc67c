"""Multi-stage probe: an mjoin whose partials move between partitions (Wang and Rundensteiner 2009).

A partial visits every partition with slices that it may match, and each slice lies in one partition, so a
pair is found once. Shedding happens where a partial is made, once, and not again in each partition that it
visits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from weir.kernel.decision import Decision
from weir.kernel.lag_recorder import LagRecorder
from weir.kernel.output import Results
from weir.kernel.partial import Partial
from weir.kernel.path import PathRun
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.quarantine import Quarantine
from weir.kernel.slice_index import SliceIndex
from weir.kernel.state import State
from weir.kernel.time_range import TimeRange
from weir.stats.batch_counts import BatchCounts
from weir.stats.lag_histogram import LagHistograms
from weir.stats.weight_sums import WeightSums


@dataclass(frozen=True, slots=True)
class Parcel:
    """Partials of one driver and rank on their way to hop number `hop_number` of their path."""

    driver: str
    rank: int
    hop_number: int
    partial: Partial


class MultiStageProbe:
    """The hops of one mjoin during one batch."""

    def __init__(
        self, physical: PhysicalPlan, decision: Decision, batch: int, quarantine: Quarantine | None = None
    ) -> None:
        self._batch = batch
        self._results = Results(physical.query, decision, {}, batch, quarantine)
        self._recorder = LagRecorder.of(physical, decision.allowance, batch)
        self._runs = {
            driver: PathRun(path, physical, decision, batch, quarantine)
            for driver, path in zip(physical.root.inputs, physical.root.paths, strict=True)
        }

    def start(self, state: State, counts: BatchCounts) -> Iterator[Parcel]:
        """Yield the batch's rows in a state that may probe."""
        for driver, run in self._runs.items():
            slices = [s for s in state.of(driver) if s.batch == self._batch]
            if not slices:
                continue
            rows = [Partial.of(s) for s in slices]
            admitted = run.admit_rows(rows, counts.hops[run.path[0].hop])
            for slice_, partial in zip(slices, admitted, strict=True):
                if partial.rows:
                    yield self._count_probes(Parcel(driver, slice_.highest_rank, 0, partial), counts)

    def visit(self, parcel: Parcel, state: State, counts: BatchCounts) -> Iterator[Parcel]:
        """Probe the slices of one partition; yield what is found, ready for the next hop or complete."""
        run = self._runs[parcel.driver]
        hop = run.path[parcel.hop_number]
        # Partials travel as row numbers of stored slices, so no other slices may take their place.
        index = SliceIndex(state.of(hop.partner.node), combines=False)
        half_join = run.half_join(parcel.hop_number, parcel.rank, index, {})
        hop_counts = counts.hops[hop.hop]
        probes, sampled = hop_counts.probes, hop_counts.sampled
        for matches in half_join.run(parcel.partial, hop_counts):
            onward = replace(parcel, hop_number=parcel.hop_number + 1, partial=matches)
            if onward.hop_number == len(run.path):
                yield onward
                continue
            shedding = run.shedding(onward.hop_number)
            admitted = shedding.admit_partial(matches, counts.hops[run.path[onward.hop_number].hop])
            if admitted.rows:
                yield self._count_probes(replace(onward, partial=admitted), counts)
        # Probes were counted where they were sent from, not in each partition that they visit.
        hop_counts.probes, hop_counts.sampled = probes, sampled

    def get_target(self, parcel: Parcel) -> tuple[str, int, int]:
        """Return the state that a parcel probes next, and the range of lead times that it can reach there."""
        hop = self._runs[parcel.driver].path[parcel.hop_number]
        lead = TimeRange(hop.lead, parcel.partial)
        return hop.partner.node, lead.earliest, lead.latest

    def results(self, parcel: Parcel, counts: BatchCounts) -> Iterator[pa.Table]:
        """Yield the results of a complete parcel."""
        results = self._runs[parcel.driver].weights.weigh(parcel.partial)
        if self._recorder is not None:
            self._recorder.add(results)
        yield from self._results.emit(results, counts)

    @property
    def weights(self) -> dict[str, WeightSums]:
        """The weights of the results so far, by driver."""
        return self._results.weights

    @property
    def lags(self) -> LagHistograms | None:
        """The lags of the results so far; None if there is no sample."""
        return None if self._recorder is None else self._recorder.get()

    def _count_probes(self, parcel: Parcel, counts: BatchCounts) -> Parcel:
        run = self._runs[parcel.driver]
        hop_counts = counts.hops[run.path[parcel.hop_number].hop]
        hop_counts.probes += parcel.partial.rows
        if run.sample is not None:
            hop_counts.sampled += run.sample.count(parcel.partial)
        return parcel
