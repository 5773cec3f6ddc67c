"""`weir-lab bench peers`: one query on weir, Flink, Spark's chained joins and, for orientation, DuckDB.

Every run is a process of its own that gets all rows at once and takes them as fast as it can; the runs of a
round follow each other, so that a busy machine slows all alike. Flink runs with settings in its favour: state
on its heap without checkpoints, rows in the order of their times, a parallel garbage collector, no sink.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from weir.errors import QueryError
from weir_lab.bench.feed import STREAMS, Feed
from weir_lab.bench.figure import Figure, ratio
from weir_lab.bench.peer_process import JobRun, run_job
from weir_lab.bench.peer_rows import MILLISECOND, Truth, check_output, prepare
from weir_lab.bench.spark import ON, SELECT, WINDOW_SECONDS

# Names another folder for what `make peers` installs.
PEERS_VARIABLE = "WEIR_PEERS"
# With 6 GB it spends its time collecting garbage at 20,000 rows a second.
_JAVA_OPTIONS = "-Xmx14g -XX:+UseParallelGC"


@dataclass(frozen=True, slots=True)
class Lane:
    """One engine with or without output; `once` is for those that are shown only for orientation."""

    engine: Literal["weir", "flink", "spark", "duckdb"]
    sink: Literal["noop", "parquet"]
    once: bool = False

    @property
    def name(self) -> str:
        """As it stands in tables and figures."""
        spark = "Spark's chained joins"
        engine = {"weir": "weir", "flink": "Flink", "spark": spark, "duckdb": "DuckDB"}[self.engine]
        return f"{engine}, {'parquet' if self.sink == 'parquet' else 'no sink'}"


WEIR, WEIR_PARQUET, FLINK = Lane("weir", "noop"), Lane("weir", "parquet"), Lane("flink", "noop")
SPARK = Lane("spark", "noop", once=True)
DUCKDB, DUCKDB_PARQUET = Lane("duckdb", "noop", once=True), Lane("duckdb", "parquet", once=True)
FIRST_RESULT = tuple(Lane(engine, "parquet") for engine in ("weir", "spark", "flink", "duckdb"))


@dataclass(frozen=True, slots=True)
class Setting:
    """One size: `warm` seconds fill the windows and are the start, `measured` seconds are the steady part."""

    rows_per_second: int
    seconds_per_batch: int
    warm: int
    measured: int
    lanes: tuple[Lane, ...]

    @property
    def name(self) -> str:
        """As it stands in a figure's name."""
        return f"{self.rows_per_second:,} rows/s in batches of {self.seconds_per_batch} s"

    @property
    def feed(self) -> Feed:
        """The rows; Flink knows times to the millisecond only."""
        return Feed(self.rows_per_second, self.rows_per_second, time_step=MILLISECOND)

    @property
    def seconds(self) -> int:
        """The event time of all rows."""
        return self.warm + self.measured

    def count_rows(self, seconds: int) -> int:
        """The rows of all streams in so many seconds."""
        return len(STREAMS) * self.rows_per_second * seconds


# Without Spark's own joins: their state does not fit into memory, and on RocksDB they do not end soon.
_FIVE_SECONDS = (WEIR, FLINK, WEIR_PARQUET, DUCKDB, DUCKDB_PARQUET)
_ONE_SECOND = (WEIR, FLINK, SPARK, DUCKDB)
FULL = (Setting(20_000, 5, 30, 30, _FIVE_SECONDS), Setting(2_000, 1, 30, 60, _ONE_SECOND))
# The same rates, or the ratios would be of other things; without what takes long there.
QUICK = (
    Setting(20_000, 5, 15, 10, (WEIR, FLINK, WEIR_PARQUET, DUCKDB)),
    Setting(2_000, 1, 15, 15, _ONE_SECOND),
)
_SMALL = Setting(200, 3, 0, 3, FIRST_RESULT)


@dataclass(frozen=True, slots=True)
class Measured:
    """One run; rates are rows of all streams a second, since the process started and in the steady part."""

    setting: Setting
    lane: Lane
    rate_with_start: float
    steady_rate: float
    results: int
    memory_mb: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """All runs in the order of their rounds, and the seconds to the first result of each engine by round."""

    runs: tuple[Measured, ...]
    first_results: Mapping[str, tuple[float, ...]]


def run(quick: bool = False) -> Outcome:
    """Run every engine at every setting, in rounds."""
    flink = flink_environment()
    with tempfile.TemporaryDirectory(prefix="weir-peers-") as folder:
        first = _measure_first_results(Path(folder) / "first", flink, 2 if quick else 5)
        runs: list[Measured] = []
        for number, setting in enumerate(QUICK if quick else FULL):
            runs += _measure(setting, Path(folder) / str(number), flink, 1 if quick else 3)
    return Outcome(tuple(runs), first)


def flink_environment() -> Path:
    """The folder that `make peers` fills."""
    folder = Path(os.environ.get(PEERS_VARIABLE) or Path(sys.prefix) / "peers")
    if not (folder / "bin" / "python").exists() or not list(folder.glob("jars/flink-sql-parquet-*.jar")):
        raise QueryError(f"there is no Flink in '{folder}': run `make peers`, which installs it")
    return folder


def _measure(setting: Setting, folder: Path, flink: Path, rounds: int) -> Iterator[Measured]:
    """Every lane in every round, in turns from either end; all must find as many results."""
    truth = prepare(setting.feed, setting.seconds, setting.warm, folder)
    for turn in range(rounds):
        lanes = [lane for lane in setting.lanes if turn == 0 or not lane.once]
        for lane in lanes if turn % 2 == 0 else reversed(lanes):
            job = _run(lane, setting, folder, flink, truth)
            _check(lane, setting, job, truth, folder / "out" if turn == 0 else None)
            shutil.rmtree(folder / "out", ignore_errors=True)
            measured = summarise_job(setting, lane, job, truth)
            _tell(f"{setting.name}, {lane.name}: {measured.steady_rate:,.0f} rows/s steady")
            yield measured
    shutil.rmtree(folder)


def summarise_job(setting: Setting, lane: Lane, job: JobRun, truth: Truth) -> Measured:
    """The rates of a run; a batch join has no steady part, so its start is all that comes before the join."""
    is_batch = lane.engine == "duckdb"
    steady_rows = setting.count_rows(setting.seconds if is_batch else setting.measured)
    return Measured(
        setting=setting,
        lane=lane,
        rate_with_start=setting.count_rows(setting.seconds) / job.seconds,
        steady_rate=steady_rows / job.seconds_after(0 if is_batch else truth.at_start),
        results=job.results,
        memory_mb=job.memory_mb,
        cpu_seconds=job.cpu_seconds,
    )


def _measure_first_results(folder: Path, flink: Path, rounds: int) -> dict[str, tuple[float, ...]]:
    """The seconds from the start of a small job's process to its first result, engine by engine in rounds."""
    truth = prepare(_SMALL.feed, _SMALL.seconds, _SMALL.warm, folder)
    seconds: dict[str, list[float]] = {lane.engine: [] for lane in _SMALL.lanes}
    # One round more, in which the files of all engines come into the cache.
    for turn in range(rounds + 1):
        for lane in _SMALL.lanes:
            job = _run(lane, _SMALL, folder, flink, truth)
            check_output(lane.name, truth, folder / "out")
            shutil.rmtree(folder / "out")
            if turn:
                seconds[lane.engine].append(job.seconds)
                _tell(f"first result, {lane.engine}: {job.seconds:.2f} s")
    return {engine: tuple(taken) for engine, taken in seconds.items()}


def _run(lane: Lane, setting: Setting, folder: Path, flink: Path, truth: Truth) -> JobRun:
    job = {
        "engine": lane.engine,
        "sink": lane.sink,
        "source": str(folder / "source"),
        "merged": str(folder / "merged"),
        "out": str(folder / "out"),
        "files_per_batch": setting.seconds_per_batch,
        "window_seconds": WINDOW_SECONDS,
        "on": ON,
        "select": SELECT,
        "results": truth.results,
    }
    command, environment = _command(lane, flink)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        try:
            return run_job(command, job, Path(work) / "job", environment)
        finally:
            shutil.rmtree(folder / "out-checkpoint", ignore_errors=True)


def _command(lane: Lane, flink: Path) -> tuple[list[str], dict[str, str]]:
    """How to start a lane's job, and in which environment."""
    if lane.engine != "flink":
        # The job runs in another folder, where a relative path would not be found.
        path = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry)
        return [sys.executable, "-m", "weir_lab.bench.peer_job"], os.environ | {"PYTHONPATH": path}
    script = Path(__file__).with_name("flink_job.py")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HADOOP_CLASSPATH": str(flink / "jars" / "*"), "JVM_ARGS": _JAVA_OPTIONS}
    return [str(flink / "bin" / "python"), str(script)], environment | {"FLINK_LOG_DIR": "."}


def _check(lane: Lane, setting: Setting, job: JobRun, truth: Truth, out: Path | None) -> None:
    """The comparison means nothing unless all find the same results."""
    if job.results != truth.results:
        raise RuntimeError(
            f"{lane.name} found {job.results:,} results instead of {truth.results:,} at {setting.name}"
        )
    if lane.sink == "parquet" and out is not None:
        check_output(lane.name, truth, out)


Rate = Literal["steady_rate", "rate_with_start"]


def figures(outcome: Outcome) -> list[Figure]:
    """A row for each aim."""
    large, small = sorted({run.setting for run in outcome.runs}, key=lambda s: -s.rows_per_second)
    return [
        _compare(outcome, large, WEIR, "steady_rate", 8.0),
        _compare(outcome, large, WEIR, "rate_with_start", 5.0),
        _compare(outcome, large, WEIR_PARQUET, "steady_rate", 4.5),
        _compare(outcome, small, WEIR, "steady_rate", 1.5),
        _compare_first_results(outcome.first_results),
    ]


def _compare(outcome: Outcome, setting: Setting, lane: Lane, rate: Rate, aim: float) -> Figure:
    """Rows per second of a lane against those of Flink without a sink, round by round."""
    runs = [run for run in outcome.runs if run.setting == setting]
    ours, theirs = ([getattr(run, rate) for run in runs if run.lane == one] for one in (lane, FLINK))
    part = "steady" if rate == "steady_rate" else "with the start"
    note = f"{median(ours):,.0f} rows/s instead of {median(theirs):,.0f}"
    name = f"{lane.name} / {FLINK.name}, {setting.name}, {part}"
    return ratio(name, ours, theirs, aim, "at least", note)


def _compare_first_results(seconds: Mapping[str, Sequence[float]]) -> Figure:
    note = ", ".join(f"{engine} {median(taken):.1f} s" for engine, taken in seconds.items())
    name = "time to first result, weir / Spark's chained joins"
    return ratio(name, seconds["weir"], seconds["spark"], 1.0, "at most", note)


def summarise(runs: Sequence[Measured]) -> list[tuple[str, ...]]:
    """A line of medians for each lane of each setting."""
    lines: list[tuple[str, ...]] = []
    for setting, lane in dict.fromkeys((run.setting, run.lane) for run in runs):
        same = [run for run in runs if (run.setting, run.lane) == (setting, lane)]
        lines.append(
            (
                setting.name,
                lane.name,
                str(len(same)),
                f"{median(run.rate_with_start for run in same):,.0f}",
                f"{median(run.steady_rate for run in same):,.0f}",
                f"{median(run.memory_mb for run in same):,.0f}",
                f"{median(run.cpu_seconds for run in same):,.0f}",
                f"{same[0].results:,}",
            )
        )
    return lines


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
