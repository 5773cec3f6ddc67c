"""The pieces of `weir-lab storm` that need no Spark."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

import weir
from weir_lab.cli.storm import show
from weir_lab.storm.aims import Resumed, aims
from weir_lab.storm.experiment import Report
from weir_lab.storm.feeder import Feeder, file_of, write
from weir_lab.storm.join_options import format_ticks
from weir_lab.storm.oracle import Compared, compare, compute_expected, count_by_tick, select_ticks
from weir_lab.storm.pictures import draw
from weir_lab.storm.record import Batch, count_ticks_taken, find_changes, read_batches, read_lines
from weir_lab.storm.schedule import SETTLED, Schedule, build_gust, build_storm
from weir_lab.storm.setup import ADAPTIVE, Setup
from weir_lab.storm.sizing import Measured, choose_sizes
from weir_lab.storm.streams import FRESH, ON, PER_TICK, SELECT, START, STREAMS, WINDOW, Streams

SCHEDULE = build_storm(warm=2, ticks=6, last=12)


def test_a_storm_has_six_phases_and_the_last_changes_nothing_but_the_rates() -> None:
    assert [phase.begin for phase in SCHEDULE.phases] == [2, 8, 14, 20, 26, 32]
    assert SCHEDULE.ticks == 44
    factors = [SCHEDULE.factor(tick) for tick in range(SCHEDULE.ticks)]
    assert factors == [1] * 8 + [5] * 24 + [1] * 12
    drifts = [SCHEDULE.drifted(tick) for tick in (0, 14, 17, 20, 43)]
    assert drifts == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert [tick for tick in range(SCHEDULE.ticks) if SCHEDULE.is_shifted(tick)] == list(range(20, 32))


def test_exact_ticks_are_calm_and_settled() -> None:
    first, *stormy, last = SCHEDULE.phases
    assert first.exact == range(2, 8)
    assert last.exact == range(32 + SETTLED, 44)
    assert not any(phase.exact for phase in stormy)
    assert [phase.name for phase in build_gust(2, 4, 9).phases] == ["calm", "rates x5", "calm again"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Streams, list[int]]:
    folder = tmp_path_factory.mktemp("source")
    streams = Streams(SCHEDULE, rows=60, interval=1.5)
    return folder, streams, write(streams, folder)


def test_streams_repeat_and_have_their_rates_and_times(source: tuple[Path, Streams, list[int]]) -> None:
    _, streams, counts = source
    assert streams.table("b", 9).equals(streams.table("b", 9))
    assert not streams.table("b", 9).equals(replace(streams, seed=1).table("b", 9))
    assert counts[4] == 4 * 60
    assert counts[12] == 4 * 300
    for name in STREAMS:
        times = streams.table(name, 9).column("ts").cast(pa.int64()).to_numpy()
        assert (np.diff(times) >= 0).all()
        assert streams.moment(9) <= times[0] <= times[-1] < streams.moment(10)


def test_the_oracle_agrees_with_weir(source: tuple[Path, Streams, list[int]]) -> None:
    folder, streams, _ = source
    for ticks in (range(2, 8), range(32, 44)):
        tables = {name: pa.concat_tables([streams.table(name, tick) for tick in ticks]) for name in STREAMS}
        joined = weir.join(
            streams=tables, on=ON, within=format_ticks(WINDOW, 1.5), select=SELECT, plan="bjtree"
        )
        results = joined.to_arrow()
        assert isinstance(results, pa.Table)
        exact = compute_expected(folder, ticks, 1.5)
        assert compare(results, exact).is_exact
        assert sum(count_by_tick(exact, 44)[ticks.start : ticks.stop]) == exact.num_rows > 20


def test_what_differs_is_told() -> None:
    def ids(*rows: int) -> pa.Table:
        return pa.table({name: pa.array(rows, pa.int64()) for name in STREAMS})

    assert compare(ids(1, 2, 2, 9), ids(1, 2, 3)) == Compared(3, missing=1, twice=1, wrong=1)
    assert not compare(ids(), ids()).is_exact
    assert select_ticks(ids(1, PER_TICK, 2 * PER_TICK), range(1, 2)).num_rows == 1


def test_files_come_one_tick_an_interval(source: tuple[Path, Streams, list[int]], tmp_path: Path) -> None:
    folder, _, _ = source
    feeder = Feeder(folder, tmp_path, interval=0.1)
    feeder.bring(0)
    brought = feeder.run(range(1, 9), lambda tick: tick < 4)
    assert len(brought) == 3
    assert brought[-1] - brought[0] >= 0.15
    assert time.time() - brought[-1] < 5
    for name in STREAMS:
        assert sorted(file.name for file in (tmp_path / name).iterdir()) == [file_of(t) for t in range(4)]


def test_sizes_follow_from_what_batches_take() -> None:
    def takes(rows: int) -> float:
        return 0.3 + 1e-5 * rows + 1e-7 * rows * rows

    sizes = choose_sizes([Measured(rows, takes(rows)) for rows in (3_000, 20, 1_000)])
    assert sizes.interval == 1.0
    assert sizes.storm_seconds == pytest.approx(2.8, rel=0.05)
    assert sizes.calm_seconds < 0.5
    assert takes(round(5 * sizes.rows * sizes.keep)) == pytest.approx(0.8, rel=0.05)
    busy = choose_sizes([Measured(20, 1.9), Measured(1_000, 4.0), Measured(3_000, 3.0)])
    assert busy.interval == 5.5
    assert 0 < busy.keep < 1


def line(number: int, rows: int, seconds: float = 0.5, **weir_section: object) -> dict[str, object]:
    return {
        "batchId": number,
        "timestamp": f"2026-01-01T00:00:{number:02d}.000Z",
        "numInputRows": rows,
        "durationMs": {"triggerExecution": 1000 * seconds},
        "weir": {
            "numOutputRows": 7,
            "state": {"a": {"memoryUsedBytes": 60}, "b": {"memoryUsedBytes": 40}},
            "decision": {"plan": "(a b c d)", "reason": "as requested"},
            "oldestAge": 4_000_000,
            "seconds": {"decide": 0.004, "observe": 0.006},
            **weir_section,
        },
        "budget": 100,
        "load": 1.0,
    }


def played(schedule: Schedule) -> list[Batch]:
    lines = [line(tick, 10) for tick in range(schedule.ticks)]
    return read_batches(ADAPTIVE, lines, [10] * schedule.ticks, schedule, 1.0)


def test_batches_find_their_ticks(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    assert read_lines(file) == []
    told = [
        line(0, 10),
        line(1, 30, decision={"plan": "(a b c d)", "orders": {"a": ["b"]}, "reason": "rates rose"}),
    ]
    file.write_text("\n".join(map(json.dumps, told)) + '\n{"batchId": 2, "numIn')
    lines = read_lines(file)
    assert count_ticks_taken(lines, [10] * 44, 1.0) == [1, 4]
    newest = dict.fromkeys(STREAMS, START + 6500000) | {"b": START + 5_900_000}
    assert count_ticks_taken([line(0, 10, newest=newest)], [10] * 44, 1.0) == [6]
    first, two = read_batches("adaptive", lines, [10] * 44, SCHEDULE, 1.0)
    assert (first.tick, first.ticks, two.tick, two.ticks) == (0, 1, 3, 3)
    assert (first.state_bytes, first.oldest_age, first.overhead) == (100, 4.0, pytest.approx(0.01))
    assert find_changes([first, two, two]) == [(first, two)]


def test_spark_s_own_progress_tells_less() -> None:
    bare = line(0, 10)
    del bare["weir"]
    (batch,) = read_batches("Spark's own", [bare], [10] * 44, SCHEDULE, 1.0)
    assert (batch.state_bytes, batch.rows_out, batch.plan) == (None, None, "")


EXACT = {"calm": Compared(9, 0, 0, 0)}


def test_a_storm_that_is_held_reaches_every_aim() -> None:
    told = played(SCHEDULE)
    resumed = Resumed(told[3], told[4], 12, 13, EXACT["calm"])
    told_aims = aims(SCHEDULE, told, FRESH * 1.0, EXACT, (200, 100), resumed)
    assert [aim.what for aim in told_aims if not aim.reached] == []


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        ({"seconds": 1.2}, "rates x5: batch time"),
        ({"state_bytes": 106}, "state against"),
        ({"oldest_age": 7.5}, "age of emitted"),
        ({"overhead": 2.0}, "monitoring"),
    ],
)
def test_what_does_not_hold_is_told(broken: dict[str, float], what: str) -> None:
    told = [replace(batch, **broken) if batch.tick == 13 else batch for batch in played(SCHEDULE)]
    told_aims = aims(SCHEDULE, told, FRESH * 1.0, EXACT, (200, 100), None)
    missed = [aim.what for aim in told_aims if not aim.reached]
    assert len(missed) == 1
    assert missed[0].startswith(what)


def test_too_few_results_cold_starts_and_missing_rows_are_told() -> None:
    told = played(SCHEDULE)
    cold = Resumed(told[3], replace(told[4], plan="another"), 12, 1, Compared(9, 1, 0, 0))
    told_aims = aims(SCHEDULE, told, 7.0, {"calm": Compared(0, 0, 0, 0)}, (199, 100), cold)
    missed = [aim.what for aim in told_aims if not aim.reached]
    assert len(missed) == 4


def test_a_lane_s_setup_goes_to_its_process(tmp_path: Path) -> None:
    setup = Setup(ADAPTIVE, 1.5, memory=1000, halved=7, warm=4)
    assert [setup.allowed(tick) for tick in (0, 6, 7, 9)] == [1000, 1000, 500, 500]
    assert Setup(ADAPTIVE, 1.5, halved=7).allowed(9) is None
    setup.write(tmp_path)
    assert Setup.read(tmp_path) == setup


def test_the_picture_and_the_tables(tmp_path: Path) -> None:
    told = played(SCHEDULE)
    sizes = choose_sizes([Measured(20, 0.3), Measured(1_000, 0.5), Measured(3_000, 1.5)])
    counts = {ADAPTIVE: [3] * SCHEDULE.ticks}
    draw(SCHEDULE, told, counts, 7.0, tmp_path / "storm.png")
    assert (tmp_path / "storm.png").stat().st_size > 10_000
    closing = aims(SCHEDULE, told, 7.0, EXACT, (200, 100), None)
    text = StringIO()
    show(Report(SCHEDULE, sizes, told, counts, {ADAPTIVE: "kept up"}, closing), Console(file=text, width=160))
    assert "calm again" in text.getvalue()
    assert "triggers are 1 s apart" in text.getvalue()
