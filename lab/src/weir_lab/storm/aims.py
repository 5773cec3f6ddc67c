"""Check what the adaptive lane had to hold: time, memory, freshness, exactness, overhead, restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from weir_lab.aim import Aim
from weir_lab.storm.oracle import Compared
from weir_lab.storm.record import Batch
from weir_lab.storm.schedule import SETTLED, Phase, Schedule

_OVER_BUDGET = 1.05
_MORE_RESULTS = 2.0
_OVERHEAD = 0.05


@dataclass(frozen=True, slots=True)
class Resumed:
    """A restart: the last batch before the driver was killed, and the first one after it."""

    before: Batch
    after: Batch
    statistics_before: int
    statistics_after: int
    exact: Compared

    @property
    def is_warm(self) -> bool:
        """True if it kept its plan and its statistics."""
        return self.before.plan == self.after.plan and self.statistics_after > self.statistics_before


def aims(
    schedule: Schedule,
    batches: Sequence[Batch],
    fresh: float,
    exact: Mapping[str, Compared],
    storm_results: tuple[int, int],
    resumed: Resumed | None,
) -> list[Aim]:
    """Check every aim on the adaptive lane's batches; `storm_results` are ours and the rival's."""
    listed = [
        *(_in_time(phase, batches) for phase in schedule.phases[1:]),
        _memory(batches),
        _freshness(batches, fresh),
        *(_exact(f"exact output: {name}", compared) for name, compared in exact.items()),
        _results(*storm_results),
        _overhead(batches),
    ]
    return listed if resumed is None else [*listed, *_resumed(resumed)]


def _in_time(phase: Phase, batches: Sequence[Batch]) -> Aim:
    mine = [batch for batch in batches if phase.begin <= batch.tick < phase.end]
    settled = next((n for n, batch in enumerate(mine) if batch.seconds <= batch.interval), len(mine))
    later = mine[SETTLED:]
    over = [batch for batch in later if batch.seconds > batch.interval]
    longest = max((batch.seconds for batch in later), default=0.0)
    told = f"after {settled} batches; then {len(over)} of {len(later)} over, the longest {longest:.2f} s"
    return Aim(
        f"{phase.name}: batch time back under the trigger",
        f"within {SETTLED} batches, and stays there",
        told,
        bool(later) and not over,
        _why_over(over, batches) if over else "",
    )


def _why_over(over: Sequence[Batch], batches: Sequence[Batch]) -> str:
    """Say whether batches that took too long ran on a machine busier than usual."""
    usual, met = median(batch.load for batch in batches), max(batch.load for batch in over)
    return f"load of the machine then {met:.1f}, usually {usual:.1f}"


def _memory(batches: Sequence[Batch]) -> Aim:
    shares = {
        batch.batch: batch.state_bytes / batch.budget_bytes
        for batch in batches
        if batch.state_bytes is not None and batch.budget_bytes
    }
    worst = max(shares, key=lambda number: shares[number], default=None)
    return Aim(
        "state against its budget",
        f"never above {_OVER_BUDGET:.0%}",
        "not told" if worst is None else f"{shares[worst]:.0%} at most (batch {worst})",
        worst is not None and shares[worst] <= _OVER_BUDGET,
    )


def _freshness(batches: Sequence[Batch], fresh: float) -> Aim:
    ages = [batch.oldest_age for batch in batches if batch.oldest_age is not None]
    return Aim(
        "age of emitted rows against freshness",
        f"at most {fresh:g} s",
        f"{max(ages):.2f} s at most" if ages else "not told",
        bool(ages) and max(ages) <= fresh,
    )


def _exact(what: str, compared: Compared) -> Aim:
    return Aim(what, "equal to DuckDB's", compared.describe(), compared.is_exact)


def _results(ours: int, rivals: int) -> Aim:
    return Aim(
        "results during the storm, beside random dropping",
        f"at least {_MORE_RESULTS:g} times",
        f"{ours:,} against {rivals:,}: {ours / max(rivals, 1):.1f} times",
        ours >= _MORE_RESULTS * rivals and ours > 0,
    )


def _overhead(batches: Sequence[Batch]) -> Aim:
    share = sum(batch.overhead for batch in batches) / max(sum(batch.seconds for batch in batches), 1e-9)
    return Aim(
        "monitoring and deciding",
        f"under {_OVERHEAD:.0%} of batch time",
        f"{share:.2%}",
        0 < share < _OVERHEAD,
        "" if share else "no batch told what it took",
    )


def _resumed(restart: Resumed) -> list[Aim]:
    return [
        Aim(
            "driver killed in the storm: it goes on",
            "with its plan and statistics",
            f"plan {restart.before.plan} → {restart.after.plan}; statistics of {restart.statistics_before} "
            f"batches → {restart.statistics_after}",
            restart.is_warm,
        ),
        _exact("exact output: calm again after the kill", restart.exact),
    ]
