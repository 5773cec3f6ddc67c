from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import weir
from weir.errors import QueryError
from weir_lab.bench import peers
from weir_lab.bench.feed import STREAMS, Feed
from weir_lab.bench.peer_process import JobRun, Mark, find_moment, run_job
from weir_lab.bench.peer_rows import Truth, check_output, merge_second, prepare
from weir_lab.bench.peers import (
    DUCKDB,
    FLINK,
    FULL,
    QUICK,
    SPARK,
    WEIR,
    WEIR_PARQUET,
    Lane,
    Measured,
    Outcome,
    Setting,
    figures,
    flink_environment,
    summarise,
    summarise_job,
)
from weir_lab.bench.spark import ON, SELECT

LARGE, SMALL = Setting(20, 5, 10, 10, (WEIR, FLINK)), Setting(2, 1, 10, 10, (WEIR, FLINK))


def measured(setting: Setting, lane: Lane, with_start: float, steady: float) -> Measured:
    return Measured(setting, lane, with_start, steady, 1_000, 2_048.0, 12.0)


class TestMarks:
    RUN = JobRun((Mark(4.0, 0), Mark(6.0, 10), Mark(10.0, 30)), 512.0, 8.0)

    def test_results_between_two_marks_come_evenly(self) -> None:
        assert [find_moment(self.RUN.marks, n) for n in (0, 5, 10, 20, 30)] == [4.0, 5.0, 6.0, 8.0, 10.0]
        with pytest.raises(ValueError, match="31 results were never out; there were 30"):
            find_moment(self.RUN.marks, 31)

    def test_the_steady_part_begins_with_the_last_result_of_the_start(self) -> None:
        run = summarise_job(LARGE, WEIR, self.RUN, Truth(30, 10, 0))
        assert (run.rate_with_start, run.steady_rate) == (1_200 / 10, 600 / 4)

    def test_the_steady_part_of_a_batch_join_is_the_join(self) -> None:
        run = summarise_job(LARGE, DUCKDB, self.RUN, Truth(30, 10, 0))
        assert (run.rate_with_start, run.steady_rate) == (1_200 / 10, 1_200 / 6)


class TestFigures:
    OUTCOME = Outcome(
        runs=(
            measured(LARGE, WEIR, 60.0, 90.0),
            measured(LARGE, FLINK, 10.0, 10.0),
            measured(LARGE, WEIR_PARQUET, 30.0, 40.0),
            measured(LARGE, SPARK, 3.0, 4.0),
            measured(LARGE, WEIR_PARQUET, 30.0, 40.0),
            measured(LARGE, FLINK, 10.0, 10.0),
            measured(LARGE, WEIR, 60.0, 70.0),
            measured(SMALL, WEIR, 5.0, 16.0),
            measured(SMALL, FLINK, 5.0, 8.0),
        ),
        first_results={"weir": (6.0, 4.0), "spark": (5.0, 5.0), "flink": (7.0, 7.0)},
    )

    def test_each_aim_has_a_row_of_ratios_by_round(self) -> None:
        rows = figures(self.OUTCOME)
        assert [(row.ratio, row.aim, row.is_reached) for row in rows] == [
            (8.0, 8.0, True),
            (6.0, 5.0, True),
            (4.0, 4.5, False),
            (2.0, 1.5, True),
            (1.0, 1.0, True),
        ]
        assert rows[0].name == "weir, no sink / Flink, no sink, 20 rows/s in batches of 5 s, steady"
        assert rows[0].note == "80 rows/s instead of 10"
        assert rows[4].note == "weir 5.0 s, spark 5.0 s, flink 7.0 s"

    def test_each_lane_of_each_setting_has_a_line(self) -> None:
        lines = summarise(self.OUTCOME.runs)
        assert [line[1:5] for line in lines[:2]] == [
            ("weir, no sink", "2", "60", "80"),
            ("Flink, no sink", "2", "10", "10"),
        ]
        assert len(lines) == 6


@pytest.mark.parametrize("settings", [FULL, QUICK])
def test_every_setting_compares_with_flink_and_ends_its_start_with_a_batch(
    settings: tuple[Setting, ...],
) -> None:
    for setting in settings:
        assert {WEIR, FLINK, DUCKDB} <= set(setting.lanes)
        assert setting.warm > 10 and setting.warm % setting.seconds_per_batch == 0
    assert WEIR_PARQUET in settings[0].lanes


class TestRows:
    def test_times_are_whole_milliseconds_and_all_rows_are_merged_in_their_order(self) -> None:
        feed = Feed(3_000, 30, time_step=1_000)
        merged = merge_second(feed, 4)
        times = merged["ms"].to_pylist()
        assert times == sorted(times) and len(set(times)) == 1_000
        for number, stream in enumerate(STREAMS):
            rows = feed.second(stream, 4)
            of_stream = merged.filter(merged["stream_id"].to_numpy() == number)
            assert sorted(of_stream["x"].to_pylist()) == sorted(rows["x"].to_pylist())
            assert all(t.microsecond % 1_000 == 0 for t in rows["ts"].to_pylist())

    def test_the_right_answer_is_that_of_every_triple(self, tmp_path: Path) -> None:
        feed = Feed(4, 2, time_step=1_000)
        truth = prepare(feed, 14, 12, tmp_path)
        rows = {
            name: [row for second in range(14) for row in feed.second(name, second).to_pylist()]
            for name in STREAMS
        }
        start = rows["a"][0]["ts"]
        found = [
            max(times)
            for triple in itertools.product(*rows.values())
            if len({row["k"] for row in triple}) == 1
            and (max(times := [row["ts"] for row in triple]) - min(times)).total_seconds() < 10
        ]
        early = sum((last - start).total_seconds() < 12 for last in found)
        assert (truth.results, truth.at_start) == (len(found), early)
        assert 0 < early < len(found)

    def test_what_weir_finds_passes_and_anything_else_does_not(self, tmp_path: Path) -> None:
        feed = Feed(4, 2, time_step=1_000)
        truth = prepare(feed, 3, 1, tmp_path)
        streams = {name: pq.read_table(tmp_path / "source" / name) for name in STREAMS}
        joined = weir.join(streams=streams, on=ON, within="10 seconds", select=SELECT).to_arrow()
        (tmp_path / "out").mkdir()
        pq.write_table(joined, tmp_path / "out" / "part.parquet")
        check_output("weir", truth, tmp_path / "out")
        twice = joined.take([0, *range(1, joined.num_rows - 1), 0])
        pq.write_table(twice, tmp_path / "out" / "part.parquet")
        with pytest.raises(RuntimeError, match=r"weir wrote \d+ results that are not the right"):
            check_output("weir", truth, tmp_path / "out")


class TestJobs:
    SCRIPT = (
        "import json, sys, time; job = json.load(open(sys.argv[1])); time.sleep(0.5); "
        "open(job['marks'], 'w').write(json.dumps([[time.time(), job['results']]]))"
    )

    def test_marks_count_from_the_start_of_the_process(self, tmp_path: Path) -> None:
        job = {"engine": "weir", "results": 7}
        run = run_job([sys.executable, "-c", self.SCRIPT], job, tmp_path / "job", os.environ)
        assert run.results == 7 and run.seconds >= 0.5 and run.memory_mb > 1
        assert json.loads((tmp_path / "job" / "job.json").read_text())["results"] == 7

    def test_a_job_that_fails_shows_its_last_words(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError, match=r"the job of weir failed with code 3:\n.*no such stream"):
            run_job(
                [sys.executable, "-c", "print('no such stream'); raise SystemExit(3)"],
                {"engine": "weir"},
                tmp_path / "job",
                os.environ,
            )


def test_without_flink_the_command_names_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(peers.PEERS_VARIABLE, str(tmp_path))
    with pytest.raises(QueryError, match=r"there is no Flink in '.*': run `make peers`"):
        flink_environment()
    for file in ("bin/python", "jars/flink-sql-parquet-2.3.0.jar"):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).touch()
    assert flink_environment() == tmp_path
