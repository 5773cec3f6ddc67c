"""`weir-lab bench batches`: what a small batch costs on Spark, beside Spark's plainest batch.

weir lets Spark write its logs to a local disk in a faster way, under a lock. The plain batch that it is
compared with writes them in the same way; for orientation there is one with Spark's defaults, too. Neither
syncs to the disk: what that adds is measured by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from weir.spark.checkpoint_lock import CheckpointLock
from weir_lab.bench.feed import Feed
from weir_lab.bench.figure import Figure, ratio, summarise, tell
from weir_lab.bench.lanes import Turn, describe_phases
from weir_lab.bench.session import check_java, session
from weir_lab.bench.spark import OURS, WINDOW_SECONDS, Setting, start_folded, take_turns

_FEW_ROWS = 10
_ROWS_PER_SECOND = 2_000
# How many times as long as a plain batch weir may take, with a folded sink and with a DataFrame.
_AIMS = {"folded, no sink": 1.25, "lazy, no sink": 2.2}
# A batch of one second's rows has one second.
_KEEPS_UP = 1.0
# Syncing may add the larger of these to a batch.
_MAX_SYNC_SECONDS = 0.06
_MAX_SYNC_SHARE = 0.1


def run(quick: bool = False) -> list[Figure]:
    """Every figure; each is told on stderr as it is done."""
    check_java()
    spark = session("weir-lab bench batches")
    try:
        return [
            *tell(overhead(spark, 5 if quick else 40)),
            *tell(one_second(spark, 5 if quick else 30)),
            *tell(durability(spark, 5 if quick else 40)),
        ]
    finally:
        spark.stop()


def overhead(spark: Any, batches: int) -> list[Figure]:
    """A batch of almost no rows against a plain one."""
    warm = 3 + batches // 4
    setting = Setting(Feed(_FEW_ROWS, _FEW_ROWS), 1, warm, batches, filling=0, settling=0)
    turns = take_turns(spark, setting, {**_PLAIN, **{name: OURS[name] for name in _AIMS}}, ())
    measured = {name: lane[warm:] for name, lane in turns.items()}
    seconds = {name: [turn.seconds for turn in lane] for name, lane in measured.items()}
    return [
        ratio(
            f"weir {name} / a plain foreachBatch that counts, {_FEW_ROWS} rows a stream",
            seconds[name],
            seconds["plain"],
            aim,
            "at most",
            f"{median(seconds[name]):.3f} s a batch, {_describe_plain(turns, warm)}; "
            f"profile: {describe_phases(measured[name])}",
        )
        for name, aim in _AIMS.items()
    ]


def one_second(spark: Any, batches: int) -> list[Figure]:
    """A batch of one second's rows against the second that it has; the windows are full."""
    warm = WINDOW_SECONDS + 2
    setting = Setting(Feed(_ROWS_PER_SECOND, _ROWS_PER_SECOND), 1, warm, batches, filling=0, settling=0)
    turns = take_turns(spark, setting, {**_PLAIN, **OURS}, ())
    return [
        ratio(
            f"weir {name}: seconds of a one-second batch, {_ROWS_PER_SECOND:,} rows/s a stream",
            [turn.seconds for turn in turns[name][warm:]],
            [1.0] * batches,
            _KEEPS_UP,
            "at most",
            f"windows of {WINDOW_SECONDS} s, {_describe_plain(turns, warm)}; "
            f"profile: {describe_phases(turns[name][warm:])}",
        )
        for name in OURS
    ]


def durability(spark: Any, batches: int) -> list[Figure]:
    """What syncing to the disk adds to a batch, beside one that syncs nothing, against what it may add."""
    warm, figures = WINDOW_SECONDS + 2, []
    for rows in (_FEW_ROWS, _ROWS_PER_SECOND):
        setting = Setting(Feed(rows, rows), 1, warm, batches, filling=0, settling=0)
        turns = take_turns(spark, setting, _DURABILITIES, ())
        synced, plain = ([turn.seconds for turn in turns[name][warm:]] for name in ("power", "process"))
        added = [ours - theirs for ours, theirs in zip(synced, plain, strict=True)]
        allowed = max(_MAX_SYNC_SECONDS, _MAX_SYNC_SHARE * median(plain))
        note = (
            f"{1000 * median(added):.0f} ms of {1000 * allowed:.0f}; {median(synced):.3f} s with "
            f"durability='power', {median(plain):.3f} s with 'process'"
        )
        name = f"seconds that syncing adds / what it may add, parquet files, {rows:,} rows a stream"
        figures.append(summarise(name, [seconds / allowed for seconds in added], 1.0, "at most", note))
    return figures


def _describe_plain(turns: Mapping[str, Sequence[Turn]], warm: int) -> str:
    return ", ".join(f"{name} {median(turn.seconds for turn in turns[name][warm:]):.3f} s" for name in _PLAIN)


def _count_by_default(streams: Mapping[str, Any], folder: Path) -> Any:
    return _counting(streams, folder).start()


def _count(streams: Mapping[str, Any], folder: Path) -> Any:
    spark = next(iter(streams.values())).sparkSession
    with CheckpointLock(spark, str(folder / "checkpoint" / "weir")) as lock:
        return lock.start(_counting(streams, folder))


def _counting(streams: Mapping[str, Any], folder: Path) -> Any:
    def count(rows: Any, batch: int) -> None:
        rows.count()

    first, *others = streams.values()
    for other in others:
        first = first.unionAll(other)
    writer = first.writeStream.foreachBatch(count)
    return writer.option("checkpointLocation", str(folder / "checkpoint"))


_DURABILITIES = {
    "power": partial(start_folded, "parquet", durability="power"),
    "process": partial(start_folded, "parquet", durability="process"),
}
_PLAIN = {"plain": _count, "plain by default": _count_by_default}
