"""`weir-lab grubjoin`: the streams, the machine, what is learned, and the whole command in small."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from weir import QueryError
from weir_lab.cli.grubjoin import show
from weir_lab.grubjoin.batches import measure_batches
from weir_lab.grubjoin.decide import BETTER, measure_optimality
from weir_lab.grubjoin.events import Feeds
from weir_lab.grubjoin.experiment import QUICK, run
from weir_lab.grubjoin.machine import Machine
from weir_lab.grubjoin.output import Bench, measure
from weir_lab.grubjoin.play import HARVEST, RANDOM_DROP, Way, play
from weir_lab.grubjoin.streams import DEVIATIONS, LAGGED, SCHEMA, Streams

PAIR = Streams((0.0, 5.0), (0.0, 0.0), ((0.0, 80.0), (10.0, 40.0)), thin=4.0)


def values(streams: Streams, name: str, start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    table = streams.between(start, end)[name]
    return table.column("ts").cast(pa.int64()).to_numpy() / 1e6, table.column("x").to_numpy()


def test_streams_go_through_the_same_values_a_lag_apart() -> None:
    times, x = values(PAIR, "s1", 0.0, 10.0)
    assert x == pytest.approx(20 * times, abs=0.01)
    times, x = values(PAIR, "s2", 0.0, 10.0)
    assert x == pytest.approx(20 * (times + 5), abs=0.01)
    assert values(PAIR, "s2", 49.0, 50.0)[1].max() < 1000  # modulo D


def test_rates_are_thinned_and_change() -> None:
    assert PAIR.between(0.0, 10.0)["s1"].num_rows == 200
    assert PAIR.between(10.0, 20.0)["s1"].num_rows == 100
    ticks = [PAIR.between(0.25 * i, 0.25 * (i + 1))["s1"].num_rows for i in range(40)]
    assert sum(ticks) == 200
    assert PAIR.between(3.0, 4.0) == PAIR.between(3.0, 4.0)


def test_lags_drift() -> None:
    moving = replace(PAIR, drift=(2.0, 4.0), lags_after=(0.0, 9.0))
    times = np.array([1.0, 3.0, 8.0])
    assert moving.lags_at(times, 1).tolist() == [5.0, 7.0, 9.0]


def test_streams_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(QueryError, match="a lag and a deviation each"):
        Streams((0.0,), (1.0, 2.0), ((0.0, 1.0),))


def test_the_join_is_a_nested_loop() -> None:
    """Every row of the partner's window is compared, and nothing less."""
    streams = Streams(LAGGED[:2], DEVIATIONS[:2], ((0.0, 40.0),))
    query = streams.join().start()
    for _ in query.chunks(streams.between(0.0, 2.0)):
        pass
    for _ in query.chunks({"s1": streams.between(2.0, 3.0)["s1"]}):
        pass
    assert query.last_report is not None
    (hop,) = query.last_report.per_hop.values()
    assert (hop.probes, hop.comparisons) == (40, 40 * 80)


def rows(*times: float) -> pa.Table:
    stamps = pa.array([round(1e6 * time) for time in times]).cast(pa.timestamp("us"))
    return pa.table([stamps, pa.array(times, pa.float32())], schema=SCHEMA)


def served(batch: dict[str, pa.Table]) -> dict[str, list[float]]:
    return {name: [round(x, 2) for x in table.column("x").to_pylist()] for name, table in batch.items()}


def test_a_machine_that_keeps_up_takes_every_row() -> None:
    queue = Machine(speed=100.0, buffer=1).start()
    for tick in range(4):
        start = tick * 0.25
        batch = queue.tick(start + 0.25, {"a": rows(start + 0.1), "b": rows(start + 0.2)})
        assert served(batch) == {"a": [round(start + 0.1, 2)], "b": [round(start + 0.2, 2)]}
        queue.spend(2, 10)
    assert queue.dropped == 0


def test_what_waits_is_bounded_and_what_does_not_fit_is_dropped() -> None:
    """A row takes a second; each buffer holds two."""
    queue = Machine(speed=1.0, buffer=2, every=1.0).start()
    queue.tick(1.0, {"a": rows(0.5), "b": rows()})
    queue.spend(1, 1.0)
    assert served(queue.tick(2.0, {"a": rows(1.1, 1.2, 1.3, 1.4), "b": rows(1.5)})) == {"a": [1.1], "b": []}
    assert queue.dropped == 1  # 1.1 is begun, 1.2 and 1.3 wait, 1.4 finds the buffer full; b has its own
    queue.spend(1, 1.0)
    # What the first row takes was not known when it came; the second has made up for it, until 3.1.
    assert served(queue.tick(3.0, {"a": rows(), "b": rows()})) == {"a": [], "b": []}
    queue.spend(0, 0.0)
    assert served(queue.tick(4.0, {"a": rows(), "b": rows()})) == {"a": [1.2], "b": []}
    assert served(queue.tick(8.0, {"a": rows(), "b": rows()})) == {"a": [1.3], "b": [1.5]}
    assert queue.dropped == 1


def test_work_that_was_not_foreseen_is_made_up_for() -> None:
    queue = Machine(speed=10.0, buffer=100, every=1.0).start()
    taken = 0
    for tick in range(40):
        batch = queue.tick(tick + 1.0, {"a": rows(*(tick + i / 10 for i in range(10)))})
        count = batch["a"].num_rows
        taken += count
        queue.spend(count, 2.0 * count)
    assert taken == pytest.approx(40 * 10 / 2, rel=0.15)  # twice what the machine can do
    assert queue.dropped == 400 - taken - 100


@pytest.mark.parametrize(
    "machine", [{"speed": 0.0}, {"speed": 1.0, "buffer": 0}, {"speed": 1.0, "every": 0.0}]
)
def test_machines_that_cannot_be_are_refused(machine: dict[str, float]) -> None:
    with pytest.raises(QueryError, match="above zero"):
        Machine(**machine)


def test_harvesting_learns_a_lag_and_beats_dropping() -> None:
    streams = Streams(LAGGED[:2], DEVIATIONS[:2], ((0.0, 200.0),), thin=4.0)
    bench = Bench(4.0, Machine(speed=20_000.0, buffer=3, every=0.5), 1.0, 40.0, 20.0)
    mine, other = (measure(bench, "f", "s", 0.0, streams, Way(way)) for way in (HARVEST, RANDOM_DROP))
    assert mine.output > 1.5 * other.output > 0
    assert 0 < mine.load <= 1.05 and other.load <= 1.05


def test_a_machine_with_time_enough_is_not_throttled() -> None:
    streams = Streams(LAGGED[:2], DEVIATIONS[:2], ((0.0, 80.0),), thin=4.0)
    periods = list(play(streams, Machine(1e9, buffer=20, every=0.5), Way(HARVEST), 10.0))
    assert [period.throttle for period in periods] == [1.0, 1.0]
    assert all(period.dropped == 0 and period.consumed == period.arrived for period in periods)


def test_exchanges_are_near_the_best() -> None:
    by_metric = {share.metric: share for share in measure_optimality(8, (0.1,))}
    assert 0.98 <= by_metric[BETTER].mean <= 1 + 1e-9
    assert by_metric["delta"].mean <= by_metric[BETTER].mean + 1e-9


def test_events_are_planted_in_both_feeds() -> None:
    feeds = Feeds(30.0, 1)
    deltas = list(feeds.deltas())
    seen = {
        name: {event for delta in deltas for event in delta[name].column("event").to_pylist()}
        for name in "ab"
    }
    assert feeds.planted(5.0) <= seen["a"] & seen["b"]
    assert feeds.planted(5.0)


def test_a_throttled_batch_looks_at_its_share() -> None:
    (cost,) = measure_batches("nested loop", (0.3,), 1)
    assert cost.ranges == pytest.approx(0.3) and cost.comparisons == pytest.approx(0.3, abs=0.03)
    assert cost.results > 0.6
    assert 0 < cost.storing < cost.cpu


def test_the_command_in_small(tmp_path: Path) -> None:
    size = replace(
        QUICK, problems=3, repeats=1, thin=20.0, seconds=25.0, rates=(100.0, 200.0), deviations=(25.0,),
        streams=(), basics=(2.0,), periods=(5.0,), multipliers=(4,), event_seconds=55.0,
        event_throttles=(0.25,), phase=5.0, batch_repeats=1, tenths=9, every=1.0, kinds=("nested loop",),
    )  # fmt: skip
    told: list[str] = []
    report = run(size, tmp_path, told.append)
    assert "figure 7" in told
    printed = StringIO()
    show(report, Console(file=printed, width=200))
    assert "comparisons a second" in printed.getvalue() and "table II" in printed.getvalue()
    figures = {f"figure{i}.csv" for i in range(7, 17)}
    assert figures | {"table2.csv", "events.csv", "drift.csv", "batches.csv", "aims.csv"} <= {
        file.name for file in tmp_path.iterdir()
    }
    assert len(list(tmp_path.glob("*.png"))) == 14
