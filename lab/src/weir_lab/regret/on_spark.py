"""The bars that need Spark: steady streams whose join is most of a batch, an overload, and freshness.

Every batch takes one file of each stream. The join runs in one task, so that the task's CPU seconds are those
of the join. The exact answer is that of the engine in one process, batch by batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

import weir
from weir.shed.thin import thin
from weir_lab.bench.session import check_java, session
from weir_lab.regret.freshness import CLOCKS, FreshRun, measure_freshness
from weir_lab.regret.machine import RealMachine
from weir_lab.regret.play import EXACT, ask, budget_of, make_truth, record, run
from weir_lab.regret.record import Record, Seen, observe
from weir_lab.regret.scenarios import Phase, Scenario
from weir_lab.regret.steady import FLOOR, SteadyRun
from weir_lab.regret.streams import WINDOW, Delta, Shape, condition

STREAMS = Shape(dict.fromkeys("abcd", 400.0), keys=100)
MULTIPLES = (0.5, 0.85, 1.3)
TRIGGER = 2.0
_CALM, _OVERLOADED = STREAMS.faster(0.25), STREAMS.faster(1.75)
_CALM_BATCHES, _OVERLOADED_BATCHES = 5, 6
_OVERLOAD_CPU = 0.5
# A batch that takes longer is given up, and counts with what it took until then.
_PATIENCE = 30.0
_LOOK = 0.05
_SCHEMA = "ts timestamp_ntz, k bigint, x double"


def measure_steady(batches: int, seed: int = 1) -> SteadyRun:
    """Run steady streams: exact, without any probe, with each budget, and exact again."""
    scenario = Scenario("steady on Spark", "nothing", (Phase("steady", batches, STREAMS),))
    feed = scenario.feed(seed)
    local = run(ask(scenario, plan="mjoin", adapt=False).start(), scenario, RealMachine(), feed)
    skips = thin(ask(scenario, plan="mjoin").planned.plan, 0.0)
    seen: dict[str, list[Seen]] = {}
    with _files(feed) as folder:
        seen[EXACT] = _run(folder, batches, plan="mjoin", adapt=False)
        seen[FLOOR] = _run(folder, batches, plan="mjoin", adapt=False, allowance=skips)
        cost = fmean(each.cpu for each in seen[EXACT][batches // 2 :])
        asked = {z: _with_budget(scenario, z) for z in MULTIPLES}
        truth = replace(make_truth(scenario, feed, local), cpu=cost / TRIGGER)
        for z, own in asked.items():
            seen[f"{z:g}"] = _run(folder, batches, budget=budget_of(own, truth, 0))
        again = _run(folder, batches, plan="mjoin", adapt=False)
    # The machine is as fast as in the mean of the first run and the last.
    seen[EXACT] = [replace(a, cpu=(a.cpu + b.cpu) / 2) for a, b in zip(seen[EXACT], again, strict=True)]

    def records(name: str, own: Scenario) -> list[Record]:
        found = record(own, RealMachine("spark"), truth, name, seed, seen[name])
        # A budget is a share of each trigger.
        return [replace(each, budget=each.budget and each.budget * TRIGGER) for each in found]

    budgeted = {z: records(f"{z:g}", own) for z, own in asked.items()}
    return SteadyRun(seed, cost, records(EXACT, scenario), records(FLOOR, scenario), budgeted)


def measure_overload(seed: int = 1) -> float:
    """The seconds of the longest batch when rows come seven times as fast, which nobody announced."""
    phases = (
        Phase("calm", _CALM_BATCHES, _CALM),
        Phase("overload", _OVERLOADED_BATCHES, _OVERLOADED),
    )
    feed = Scenario("overload", "the rates", phases).feed(seed)
    longest = 0.0
    with _files(feed) as folder, _query(folder, budget=weir.Budget(cpu=_OVERLOAD_CPU)) as query:
        for batch in range(len(feed)):
            started = time.monotonic()
            is_done = _wait(query, batch, _PATIENCE)
            if batch >= _CALM_BATCHES:
                told = _durations(query).get(batch) if is_done else None
                longest = max(longest, time.monotonic() - started if told is None else told)
            if not is_done:
                break
    return longest


def measure_freshness_there(batches: int) -> list[FreshRun]:
    """Run `fresh=` beside its definition, by each clock."""
    check_java()
    spark = session("weir-lab regret")
    return [measure_freshness(clock, batches, spark=spark) for clock in CLOCKS]


def _with_budget(scenario: Scenario, multiple: float) -> Scenario:
    return replace(scenario, phases=tuple(replace(phase, cpu=multiple) for phase in scenario.phases))


def _run(folder: Path, batches: int, **options: Any) -> list[Seen]:
    with _query(folder, **options) as query:
        for batch in range(batches):
            if not _wait(query, batch, 4 * _PATIENCE):
                raise TimeoutError(f"batch {batch} takes longer than {4 * _PATIENCE:g} seconds")
        progress = {each["batchId"]: each["weir"] for each in query.recentProgress if each.get("weir")}
        return [observe(progress[batch], _task_cpu(progress[batch])) for batch in range(batches)]


def _task_cpu(progress: dict[str, Any]) -> float:
    """The CPU seconds of the join's only task."""
    return float(sum(progress["seconds"]["task"].values()))


@contextmanager
def _query(folder: Path, **options: Any) -> Iterator[Any]:
    spark = session("weir-lab regret")
    frames = {
        name: spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        for name in STREAMS.names
    }
    asked: Any = weir.join(
        streams=frames,
        on=condition(STREAMS.names, lagged=False),
        within=f"{WINDOW} seconds",
        select="a.k AS k",
        partitions=1,
        durability="process",
        **options,
    )
    with TemporaryDirectory() as checkpoint:
        writer = asked.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(processingTime=f"{TRIGGER:g} seconds").start()
        try:
            yield query
        finally:
            query.stop()


@contextmanager
def _files(feed: Sequence[Delta]) -> Iterator[Path]:
    """A folder with one file for each stream and batch, in the order of their names and times."""
    check_java()
    with TemporaryDirectory() as name:
        folder = Path(name)
        for number, rows in enumerate(feed):
            for stream, table in rows.items():
                (folder / stream).mkdir(exist_ok=True)
                pq.write_table(table, folder / stream / f"{number:04d}.parquet")
        yield folder


def _wait(query: Any, batch: int, patience: float) -> bool:
    """Wait until a batch is done; False if it takes too long."""
    until = time.monotonic() + patience
    while batch not in _durations(query):
        if time.monotonic() > until:
            return False
        if not query.isActive:
            raise query.exception() or RuntimeError("the query has ended")
        time.sleep(_LOOK)
    return True


def _durations(query: Any) -> dict[int, float]:
    """The seconds of each batch, as Spark tells them."""
    return {
        each["batchId"]: each["durationMs"]["triggerExecution"] / 1000
        for each in query.recentProgress
        if each["numInputRows"]
    }
