"""`weir-lab bench spark`: joins on Spark beside Spark's own chained joins, batch by batch in turns.

Every query gets the same files, one after the other, so a busy machine slows all alike. The ratios are
against the fastest of Spark's forms, which runs without a sink, also where weir writes parquet.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Literal

import weir
from weir.options import Durability
from weir_lab.bench import spark_joins as chained
from weir_lab.bench.feed import Feed
from weir_lab.bench.figure import Figure, ratio, tell
from weir_lab.bench.lanes import Lane, Starter, Turn, describe_phases
from weir_lab.bench.session import session
from weir_lab.bench.spark_joins import FORMS, StateForm

WINDOW_SECONDS = 10
ON = "a.k = b.k AND b.k = c.k"
SELECT = "a.k, a.x AS ax, b.x AS bx, c.x AS cx"
# For orientation: Flink 2.3's interval joins on this query and 2 cores.
_FLINK_ROWS_PER_SECOND = 28_000
# A form of Spark this many times as slow as the fastest while warming up is not measured any further.
_TOO_SLOW = 3.0


@dataclass(frozen=True, slots=True)
class Setting:
    """One size of the comparison: the windows fill, some batches warm up, time passes, the rest are measured.

    Spark keeps what its second join stores for three windows, so the state of its forms grows that long:
    those that keep up while warming up go on for the seconds of `settling`. `aim` is for the folded form.
    """

    feed: Feed
    seconds_per_batch: int
    warm: int
    measured: int
    aim: float = 1.0
    filling: int = WINDOW_SECONDS
    settling: int = 2 * WINDOW_SECONDS

    @property
    def name(self) -> str:
        """As it stands in a figure's name."""
        grown = "" if self.seconds_per_batch == 1 else f", {self.seconds_per_batch} files a trigger"
        return f"{self.feed.rows_per_second:,} rows/s{grown}"

    @property
    def batches(self) -> list[range]:
        """The seconds of each batch."""
        size = self.seconds_per_batch
        warm = [self.filling + i * size for i in range(self.warm)]
        settled = self.filling + self.warm * size + self.settling
        measured = [settled + i * size for i in range(self.measured)]
        return [range(start, start + size) for start in (*warm, *measured)]


def run(quick: bool = False) -> list[Figure]:
    """Every figure; each is told on stderr as it is done."""
    spark = session("weir-lab bench spark")
    small, large = (200, 2_000) if quick else (2_000, 20_000)
    few, many = (2, 3) if quick else (4, 12)
    settings = (
        Setting(Feed(small, small), 1, 3, many, 5.0),
        Setting(Feed(large, large), 1, 1, few, 20.0),
        Setting(Feed(small, small), 10, 1, few, 5.0),
    )
    figures: list[Figure] = []
    try:
        for setting in settings:
            figures += tell(Race.run(spark, setting, FORMS).figures())
        grown = Setting(Feed(large, large), 10, 1, few, 1.0)
        figures += tell(Race.run(spark, grown, ()).figures())
    finally:
        spark.stop()
    return figures


@dataclass(frozen=True)
class Race:
    """The measured batches of every query at one setting; Spark's forms, fastest first, and the slow ones."""

    setting: Setting
    forms: tuple[StateForm, ...]
    turns: Mapping[str, Sequence[Turn]]
    slow: tuple[str, ...]

    @staticmethod
    def run(spark: Any, setting: Setting, forms: Sequence[StateForm]) -> Race:
        """Run every query through all batches, in turns; all must find as many results."""
        theirs = {form.name: partial(_chained, form) for form in forms}
        lanes = take_turns(spark, setting, {**theirs, **OURS}, theirs.keys())
        measured = {name: turns[setting.warm :] for name, turns in lanes.items()}
        running = [form for form in forms if measured[form.name]]
        ranked = sorted(running, key=lambda form: median(turn.seconds for turn in measured[form.name]))
        slow = [f"{name}: {_summary(lanes[name])}" for name in theirs if not measured[name]]
        return Race(setting, tuple(ranked), measured, tuple(slow))

    def figures(self) -> list[Figure]:
        """Spark's time against ours, or without Spark our rate against the orientation; and the state."""
        times = [self._time(name) for name in OURS]
        return [*times, self._state()]

    def _time(self, name: str) -> Figure:
        ours = self.turns[name]
        note = _summary(ours)
        if not self.forms:
            rates = [turn.rows / turn.seconds for turn in ours]
            title = f"weir {name} / Flink's {_FLINK_ROWS_PER_SECOND:,} rows/s elsewhere, {self.setting.name}"
            return ratio(title, rates, [_FLINK_ROWS_PER_SECOND] * len(rates), 1.0, "at least", note)
        best = self.forms[0].name
        note += "".join(f"; Spark {form.name}: {_summary(self.turns[form.name])}" for form in self.forms)
        note += "".join(f"; Spark {slow}, too slow to go on" for slow in self.slow)
        aim = self.setting.aim if name.startswith("folded") else 1.0
        return ratio(
            f"Spark's chained joins / weir {name}, {self.setting.name}",
            [turn.seconds for turn in self.turns[best]],
            [turn.seconds for turn in ours],
            aim,
            "at least",
            f"{note}; profile: {describe_phases(ours)}",
        )

    def _state(self) -> Figure:
        setting = self.setting
        kept = [turn.state_rows or 0 for turn in self.turns["folded, no sink"]]
        needed = [
            setting.feed.rows_alive(batch[-1], WINDOW_SECONDS) for batch in setting.batches[setting.warm :]
        ]
        name = f"state rows / rows inside the windows, {setting.name}"
        return ratio(name, kept, needed, 1.2, "at most", f"{max(kept):,} rows at most")


def take_turns(
    spark: Any, setting: Setting, starters: Mapping[str, Starter], theirs: Collection[str]
) -> dict[str, list[Turn]]:
    """Every query through the same batches, batch by batch, in folders that are removed at the end."""
    batches = setting.batches
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        source = Path(folder) / "source"
        setting.feed.write(source, range(batches[-1][-1] + 1))
        lanes = [
            Lane.open(name, spark, Path(folder) / f"lane-{i}", source, start)
            for i, (name, start) in enumerate(starters.items())
        ]
        try:
            _pass(lanes, range(setting.filling), theirs)
            running = lanes
            for number, batch in enumerate(batches):
                if number == setting.warm:
                    running = _without_slow(running, theirs)
                    _pass(running, range(batch[0] - setting.settling, batch[0]), theirs)
                _take(running, batch, f"batch {number + 1} of {len(batches)}")
        finally:
            for lane in lanes:
                lane.close()
        return {lane.name: lane.turns for lane in lanes}


def _pass(lanes: Sequence[Lane], seconds: range, theirs: Collection[str]) -> None:
    """Let time pass unmeasured: in one batch for Spark, whose state is the same for it, in seconds for us."""
    results = {}
    for lane in lanes:
        parts = [seconds] if lane.name in theirs else [[second] for second in seconds]
        before = len(lane.turns)
        results[lane.name] = sum(lane.take(part).results or 0 for part in parts if part)
        del lane.turns[before:]
    _check_equal(results, f"in the seconds {seconds}, which are not measured,")


def _take(lanes: Sequence[Lane], batch: Sequence[int], where: str) -> None:
    turns = {lane.name: lane.take(batch) for lane in lanes}
    shown = ", ".join(f"{name} {turn.seconds:.2f} s" for name, turn in turns.items())
    print(f"{where}: {shown}", file=sys.stderr, flush=True)
    _check_equal({n: t.results for n, t in turns.items() if t.results is not None}, where)


def _without_slow(lanes: Sequence[Lane], theirs: Collection[str]) -> list[Lane]:
    """Stop the forms of Spark that cannot become the fastest: they would only make the run longer."""
    typical = {
        lane.name: median(turn.seconds for turn in lane.turns) for lane in lanes if lane.name in theirs
    }
    limit = _TOO_SLOW * min(typical.values(), default=0.0)
    for lane in lanes:
        if typical.get(lane.name, 0.0) > limit:
            lane.query.stop()
    return [lane for lane in lanes if typical.get(lane.name, 0.0) <= limit]


def _check_equal(results: Mapping[str, int | None], where: str) -> None:
    """The comparison means nothing unless all find the same number of results."""
    if len(set(results.values())) > 1:
        raise RuntimeError(f"{where} the queries found different numbers of results: {results}")


def _joined(streams: Mapping[str, Any], durability: Durability = "process") -> Any:
    """By default nothing is synced to the disk, as by Spark's joins; `bench batches` says what that costs."""
    return weir.join(
        streams=streams, on=ON, within=f"{WINDOW_SECONDS} seconds", select=SELECT, durability=durability
    )


def start_folded(
    sink: Literal["noop", "parquet"],
    streams: Mapping[str, Any],
    folder: Path,
    durability: Durability = "process",
) -> Any:
    """Start weir's join with a sink whose results the workers write themselves."""
    writer = _joined(streams, durability).writeStream.format(sink)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start(str(folder / "out"))


def _lazy(streams: Mapping[str, Any], folder: Path) -> Any:
    def drop(results: Any, batch: int) -> None:
        results.write.format("noop").mode("overwrite").save()

    writer = _joined(streams).writeStream.foreachBatch(drop)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def _chained(form: StateForm, streams: Mapping[str, Any], folder: Path) -> Any:
    return chained.start(form, streams, folder, WINDOW_SECONDS)


OURS: Mapping[str, Callable[[Mapping[str, Any], Path], Any]] = {
    "folded, no sink": partial(start_folded, "noop"),
    "folded, parquet": partial(start_folded, "parquet"),
    "lazy, no sink": _lazy,
}


def _summary(turns: Sequence[Turn]) -> str:
    seconds = median(turn.seconds for turn in turns)
    results = median(turn.results or 0 for turn in turns)
    state = median(turn.state_rows or 0 for turn in turns)
    return (
        f"{seconds:.2f} s a batch, {turns[0].rows / seconds:,.0f} rows/s, "
        f"{results / seconds:,.0f} results/s, {state:,.0f} state rows"
    )
