"""Run `weir-lab storm`: six phases, three lanes, one kill; report tables, CSV files and a picture."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from weir_lab.aim import Aim
from weir_lab.csv import write_tables
from weir_lab.storm.aims import Resumed, aims
from weir_lab.storm.feeder import Feeder, write, write_tick
from weir_lab.storm.lane import Process, Run, play
from weir_lab.storm.oracle import (
    Compared,
    compare,
    compute_expected,
    count_by_tick,
    read_emitted,
    select_ticks,
)
from weir_lab.storm.record import Batch, read_batches
from weir_lab.storm.schedule import FACTOR, MEMORY, SETTLED, Schedule, build_gust, build_storm
from weir_lab.storm.setup import ADAPTIVE, DROPPING, OWN, SIZING, Setup
from weir_lab.storm.sizing import Measured, Sizes, choose_sizes
from weir_lab.storm.streams import FRESH, STREAMS, WINDOW, Streams

Tell = Callable[[str], None]
# Rows a tick and stream that are measured: next to none, and what a busy machine can still do.
_FEW, _SOME, _MANY = 20, 1_000, 3_000
_TICK = 1.0
# What is kept of a full storm may take this much of the budget, before it is halved.
_ROOM = 1.2


@dataclass(frozen=True, slots=True)
class Size:
    """Ticks of the warm-up, of a phase, of the calm at the end, and of each size that is measured."""

    warm: int
    phase: int
    last: int
    measured: int


FULL = Size(warm=8, phase=25, last=30, measured=4)
QUICK = Size(warm=8, phase=8, last=14, measured=2)


@dataclass(frozen=True, slots=True)
class Report:
    """All measurements; the files hold them too."""

    schedule: Schedule
    sizes: Sizes
    batches: list[Batch]
    results: dict[str, list[int]]
    behind: dict[str, str]
    aims: list[Aim]


def run(size: Size, out: Path, tell: Tell) -> Report:
    """Run all lanes and write the results to a folder; `tell` is called with each step."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="weir-storm-") as name:
        return _run(size, out, Path(name), tell)


def _run(size: Size, out: Path, folder: Path, tell: Tell) -> Report:
    sizes, row_bytes = _measure(size, folder, tell)
    memory = round(_ROOM * row_bytes * len(STREAMS) * FACTOR * sizes.rows * WINDOW)
    schedule = build_storm(size.warm, size.phase, size.last)
    source = folder / "source"
    tell("making the streams")
    counts = write(Streams(schedule, sizes.rows, sizes.interval), source)
    halved = schedule.begin(MEMORY)
    lanes = {
        ADAPTIVE: Setup(ADAPTIVE, sizes.interval, memory, halved, warm=size.warm),
        DROPPING: Setup(DROPPING, sizes.interval, drop=1 - sizes.keep),
        OWN: Setup(OWN, sizes.interval),
    }
    runs = {
        name: play(setup, schedule, source, counts, folder / name.replace("'", ""), tell=tell)
        for name, setup in lanes.items()
    }
    told = {
        name: read_batches(name, run.lines, counts, schedule, sizes.interval) for name, run in runs.items()
    }
    results = {name: count_by_tick(read_emitted(run.out), schedule.ticks) for name, run in runs.items()}
    tell("the exact results, by DuckDB")
    exact = _exact(runs[ADAPTIVE], source, schedule, sizes.interval)
    stormy = [tick for tick in range(schedule.ticks) if not schedule.phase(tick).is_calm]
    resumed, killed = _killed(size, sizes, memory, folder, tell)
    clocked = [batch for batch in told[ADAPTIVE] if batch.tick >= schedule.warm]
    fresh = FRESH * sizes.interval
    storm_results = tuple(sum(results[name][tick] for tick in stormy) for name in (ADAPTIVE, DROPPING))
    report = Report(
        schedule,
        sizes,
        [*(batch for mine in told.values() for batch in mine), *killed],
        results,
        {name: _behind(run, told[name], schedule) for name, run in runs.items()},
        aims(schedule, clocked, fresh, exact, (storm_results[0], storm_results[1]), resumed),
    )
    tell("writing files")
    write_tables(out, [("batches", report.batches), ("aims", report.aims)])
    # Not at the top: who only reads the figures needs nothing to draw with.
    from weir_lab.storm.pictures import draw

    draw(schedule, report.batches, results, fresh, out / "storm.png")
    return report


def _measure(size: Size, folder: Path, tell: Tell) -> tuple[Sizes, float]:
    """Time batches of three sizes with full windows; return sizes for this machine and bytes per kept row."""
    each = [_FEW] * (size.warm + size.measured)
    each += [rows for rows in (_SOME, _MANY) for _ in range(WINDOW + 1 + size.measured)]
    calm = Schedule.of(0, [("calm", len(each))])
    source, lane = folder / "measured", folder / "sizing"
    counts = [write_tick(Streams(calm, rows, _TICK), tick, source) for tick, rows in enumerate(each)]
    lines = _one_by_one(Setup(SIZING, _TICK), counts, source, lane, tell)
    told = read_batches(SIZING, lines, counts, calm, _TICK)
    ends = [place for place, rows in enumerate(each) if each[place + 1 : place + 2] != [rows]]
    measured = [
        Measured(
            each[end], median(batch.seconds for batch in told if end - size.measured < batch.tick <= end)
        )
        for end in ends
    ]
    kept = sum(counts[-WINDOW:])
    return choose_sizes(measured), (told[-1].state_bytes or 0) / kept


def _one_by_one(
    setup: Setup, counts: Sequence[int], source: Path, folder: Path, tell: Tell
) -> list[dict[str, Any]]:
    """Feed each tick once the query has read the one before it."""
    folder.mkdir(parents=True)
    setup.write(folder)
    feeder = Feeder(source, folder / "in", setup.interval)
    with Process(folder, counts, setup.interval) as process:
        for tick in range(len(counts)):
            tell(f"measuring this machine: batch {tick + 1} of {len(counts)}")
            feeder.bring(tick)
            process.expect(tick + 1)
        process.stop()
        return process.lines


def _exact(run: Run, source: Path, schedule: Schedule, interval: float) -> dict[str, Compared]:
    results = read_emitted(run.out)
    return {
        phase.name: compare(
            select_ticks(results, phase.exact), compute_expected(source, phase.exact, interval)
        )
        for phase in schedule.phases
        if phase.is_calm
    }


def _killed(
    size: Size, sizes: Sizes, memory: int, folder: Path, tell: Tell
) -> tuple[Resumed | None, list[Batch]]:
    """Run a shorter storm and kill the driver in its middle."""
    schedule = build_gust(size.warm, SETTLED, size.last + SETTLED)
    source, lane = folder / "gust", folder / "killed"
    counts = write(Streams(schedule, sizes.rows, sizes.interval, seed=1), source)
    middle = schedule.phases[1].begin + SETTLED
    setup = Setup(ADAPTIVE, sizes.interval, memory, warm=size.warm)
    run = play(setup, schedule, source, counts, lane, middle, tell=tell)
    told = read_batches("killed", run.lines, counts, schedule, sizes.interval)
    exact = _exact(run, source, schedule, sizes.interval)["calm again"]
    at = run.killed_at
    if at is None or not 0 < at < len(told):
        return None, told
    before, after = (_known(run.lines[number]) for number in (at - 1, at))
    return Resumed(told[at - 1], told[at], before, after, exact), told


def _known(line: dict[str, Any]) -> int:
    """Return how many batches the statistics have seen."""
    return int(((line["weir"] or {}).get("statistics") or {}).get("batches", 0))


def _behind(run: Run, mine: Sequence[Batch], schedule: Schedule) -> str:
    """Describe how far a lane fell behind."""
    taken = 1 + max((batch.tick for batch in mine), default=-1)
    if taken == run.given:
        late = next((batch for batch in mine if batch.tick >= schedule.warm and batch.ticks > 2), None)
        return "kept up" if late is None else f"fell behind in '{late.phase}' (tick {late.tick}), caught up"
    return f"fell behind: {taken} of {run.given} ticks taken when the time was over"
