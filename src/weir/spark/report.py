"""What a task tells the driver: the descriptors of what it wrote, and what it counted; never data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weir.kernel.batch import Work
from weir.kernel.ingest import Ingested
from weir.kernel.migration_state import MigrationState
from weir.kernel.plan_migration import PhysicalPlans, effort
from weir.plan.tree import Join, hops
from weir.spark.plan_json import standing_from_json, standing_to_json
from weir.spark.slice_files import SliceEntry
from weir.stats.batch import Hop, HopStats
from weir.stats.lag_histogram import LagHistograms


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of one partition: its live slices, where its row windows go on, and which plan answers.

    Without a standing, the plan that is decided answers: no batch has built here yet.
    """

    slices: tuple[SliceEntry, ...] = ()
    next_place: int = 0
    next_numbers: Mapping[str, int] = field(default_factory=dict)
    standing: MigrationState | None = None

    def towards(self, programs: PhysicalPlans, plan: Join) -> PartitionState:
        """The same when a plan is decided, without the slices that nobody needs any more."""
        standing = (self.standing or MigrationState(plan)).towards(plan)
        program = programs.of(standing.plan, standing.beside(plan))
        slices = tuple(entry for entry in self.slices if program.layout_of(entry.node) is not None)
        return replace(self, slices=slices, standing=standing)

    def to_json(self) -> dict[str, Any]:
        """As it stands in a manifest."""
        return {
            "next_place": self.next_place,
            "next_numbers": dict(self.next_numbers),
            "slices": [entry.to_json() for entry in self.slices],
            "standing": None if self.standing is None else standing_to_json(self.standing),
        }

    @staticmethod
    def from_json(part: Mapping[str, Any]) -> PartitionState:
        """The part of `to_json`."""
        slices = tuple(SliceEntry.from_json(entry) for entry in part["slices"])
        standing = part["standing"]
        return PartitionState(
            slices,
            part["next_place"],
            part["next_numbers"],
            None if standing is None else standing_from_json(standing),
        )


@dataclass(frozen=True, slots=True)
class ProbeCounts:
    """What a partition's probes counted; several partitions add up.

    `building` are the steps and seconds of hops that make states of another plan. `oldest` is the age of the
    oldest row in a result (µs), where a freshness is asked for.
    """

    results: int = 0
    stale: int = 0
    hops: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lags: LagHistograms | None = None
    building: tuple[int, float] = (0, 0.0)
    oldest: int | None = None

    @staticmethod
    def of(work: Work) -> ProbeCounts:
        """The counts of a batch's work."""
        per_hop = {
            str(hop): {
                "probes": stats.probes,
                "skipped": stats.skipped,
                "comparisons": stats.comparisons,
                "matches": stats.matches,
                "seconds": stats.seconds,
                "sampled": stats.sampled,
                "sampledMatches": stats.sampled_matches,
                "narrowed": stats.narrowed,
                "slicesNotVisited": stats.unvisited,
            }
            for hop, stats in work.per_hop().items()
        }
        beside = work.per_hop_beside().values()
        return ProbeCounts(
            work.results,
            work.stale,
            per_hop,
            None if work.apart is None else work.apart.get(),
            (effort(beside), sum(hop.seconds for hop in beside)),
            work.oldest,
        )

    @property
    def shed(self) -> int:
        """How many rows did not probe where they had come to."""
        return sum(int(found["skipped"]) for found in self.hops.values())

    @property
    def effort(self) -> int:
        """The steps of the plan's own hops."""
        return sum(int(hop["probes"] + hop["comparisons"] + hop["matches"]) for hop in self.hops.values())

    def per_hop(self, plan: Join) -> dict[Hop, HopStats]:
        """What each hop of a plan did."""
        return {
            hop: HopStats(
                probes=int(found["probes"]),
                comparisons=int(found["comparisons"]),
                matches=int(found["matches"]),
                seconds=found["seconds"],
                skipped=int(found["skipped"]),
                sampled=int(found["sampled"]),
                sampled_matches=int(found["sampledMatches"]),
                narrowed=int(found["narrowed"]),
                unvisited=int(found["slicesNotVisited"]),
            )
            for hop in hops(plan)
            if (found := self.hops.get(str(hop))) is not None
        }

    def __add__(self, other: ProbeCounts) -> ProbeCounts:
        summed = {name: dict(found) for name, found in self.hops.items()}
        for name, found in other.hops.items():
            mine = summed.setdefault(name, dict.fromkeys(found, 0))
            for what, value in found.items():
                mine[what] = mine.get(what, 0) + value
        lags = [found for found in (self.lags, other.lags) if found is not None]
        both = lags[0].aged(lags[1], kept=1.0) if len(lags) == 2 else next(iter(lags), None)
        building = (self.building[0] + other.building[0], self.building[1] + other.building[1])
        oldest = max((age for age in (self.oldest, other.oldest) if age is not None), default=None)
        results, stale = self.results + other.results, self.stale + other.stale
        return ProbeCounts(results, stale, summed, both, building, oldest)

    def to_json(self) -> dict[str, Any]:
        """As it travels."""
        lags = None if self.lags is None else self.lags.to_json()
        return {
            "results": self.results,
            "stale": self.stale,
            "hops": self.hops,
            "lags": lags,
            "building": list(self.building),
            "oldest": self.oldest,
        }

    @staticmethod
    def from_json(counts: Mapping[str, Any]) -> ProbeCounts:
        """The counts of `to_json`."""
        found = counts["lags"]
        lags = None if found is None else LagHistograms.from_json(found)
        building, oldest = tuple(counts["building"]), counts["oldest"]
        return ProbeCounts(counts["results"], counts["stale"], counts["hops"], lags, building, oldest)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One partition's batch: its state afterwards, what came in, what came out, how long each phase took."""

    partition: int
    part: PartitionState
    rows_in: Mapping[str, int]
    late: Mapping[str, int]
    null_time: Mapping[str, int]
    dropped: Mapping[str, int]
    newest: Mapping[str, int]
    counts: ProbeCounts
    files: tuple[str, ...]
    seconds: Mapping[str, float]

    @staticmethod
    def of(
        partition: int,
        part: PartitionState,
        built: Ingested,
        counts: ProbeCounts,
        files: tuple[str, ...],
        seconds: Mapping[str, float],
    ) -> TaskReport:
        """The report of a built batch."""
        return TaskReport(
            partition,
            part,
            built.rows_in,
            built.late,
            built.null_time,
            built.dropped,
            dict(built.state.newest),
            counts,
            files,
            seconds,
        )

    @property
    def entered(self) -> dict[str, int]:
        """The rows of each stream that came in time; some that a filter drops are counted too."""
        gone = (self.late, self.null_time, self.dropped)
        return {name: n - sum(one.get(name, 0) for one in gone) for name, n in self.rows_in.items()}

    def without(self, copies: Mapping[str, int], theirs: Ingested) -> TaskReport:
        """The same without so many copies, and what was counted of those that are here beside other rows."""
        own = {name: n - copies.get(name, 0) for name, n in self.rows_in.items()}

        def counted(found: Mapping[str, int], copied: Mapping[str, int]) -> dict[str, int]:
            return {name: n - copied.get(name, 0) for name, n in found.items() if own[name]}

        return replace(
            self,
            rows_in=own,
            late=counted(self.late, theirs.late),
            null_time=counted(self.null_time, theirs.null_time),
            dropped=counted(self.dropped, theirs.dropped),
        )

    def to_bytes(self) -> bytes:
        """As it travels."""
        return json.dumps(
            {
                "partition": self.partition,
                "part": self.part.to_json(),
                "rows_in": dict(self.rows_in),
                "late": dict(self.late),
                "null_time": dict(self.null_time),
                "dropped": dict(self.dropped),
                "newest": dict(self.newest),
                "counts": self.counts.to_json(),
                "files": list(self.files),
                "seconds": dict(self.seconds),
            }
        ).encode()

    @staticmethod
    def from_bytes(data: bytes) -> TaskReport:
        """The report of `to_bytes`."""
        found = json.loads(data)
        return TaskReport(
            **{
                **found,
                "part": PartitionState.from_json(found["part"]),
                "counts": ProbeCounts.from_json(found["counts"]),
                "files": tuple(found["files"]),
            }
        )
