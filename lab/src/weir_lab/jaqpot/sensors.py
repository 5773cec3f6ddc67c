"""Figure 8 of Mukherji et al. 2011: five groups of neighbouring sensors, on real or generated readings.

The paper joins the weatherboards of the Intel lab, but says neither on what nor how fast they are replayed.
Here readings agree if their temperatures do, to a tenth of a degree, and rows come at 1 500 a second, as they
stand in the file. Motes report in turns, so the newest row of a batch is again and again that of the same
mote; which rows may probe is chosen by hash instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

import weir
from weir.errors import QueryError
from weir.local.join import LocalJoin
from weir.plan.tree import Join, hops, join
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.stats.join_graph import JoinGraph
from weir_lab.jaqpot.freshness import BUDGET, Staleness
from weir_lab.jaqpot.loop import Loop
from weir_lab.jaqpot.play import Stage
from weir_lab.jaqpot.policies import GREPP, JAQPOT, POLICIES_COMPARED, Division, divide
from weir_lab.jaqpot.rivals import RIVALS
from weir_lab.jaqpot.settings import with_row_window
from weir_lab.virtual_machine import Delta

GROUPS = "ABCDE"
ROWS = 1_000
BUDGETS = (300.0, 600.0, 900.0)
FACTOR = 1.5
RATE = 1_500.0
PER_DEGREE = 10
_EVERY = 0.2
# Seconds between two analyses.
_INTERVAL = 1.0
# Probes a second before a run begins.
_FILLING = 3_000.0
_MOTES, _SLOTS = 52, 14_400
_MIT = ("date", "time", "epoch", "moteid", "temperature", "humidity", "light", "voltage")
_SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("degree", pa.int64())])
TREE: Join = join(
    with_row_window(join(with_row_window(join("A", "B"), ROWS), with_row_window(join("C", "D"), ROWS)), ROWS),
    "E",
)


@dataclass(frozen=True)
class Readings:
    """Which group each reading belongs to, and its tenth of a degree, in the order they came."""

    source: str
    group: NDArray[np.int64]
    degree: NDArray[np.int64]

    @cached_property
    def length(self) -> float:
        """Virtual seconds until all are played."""
        return len(self.group) / RATE

    def between(self, first: int, last: int) -> Delta:
        """The rows of some places in the file; one after the other, evenly."""
        group, degree = self.group[first:last], self.degree[first:last]
        times = (np.arange(first, first + len(group)) / RATE * 1e6).astype(np.int64)
        return {
            name: pa.table(
                [pa.array(times[group == i]).cast(pa.timestamp("us")), pa.array(degree[group == i])],
                schema=_SCHEMA,
            )
            for i, name in enumerate(GROUPS)
        }

    def graph(self, last: int) -> JoinGraph:
        """What the windows tell just before a place in the file: rates, and how often readings agree."""
        shares, rates = {}, {}
        recent = slice(max(0, last - 8 * ROWS), last)
        group, degree = self.group[recent], self.degree[recent]
        lowest, highest = degree.min(), degree.max()
        for i, name in enumerate(GROUPS):
            mine = degree[group == i][-ROWS:]
            shares[name] = np.bincount(mine - lowest, minlength=int(highest - lowest) + 1) / len(mine)
            rates[name] = RATE * float(np.mean(group == i))
        agreeing = {
            streams: float(np.prod([shares[name] for name in streams], axis=0).sum())
            for streams in (("A", "B"), ("C", "D"), ("A", "B", "C", "D"), tuple(GROUPS))
        }
        return JoinGraph.of(rates, RowWindow(ROWS), agreeing)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a policy has put out until a virtual second: all results, those that were fresh, and its probes.

    `spent` is probes made for each one allowed, and `scale` what the loop made of the budget.
    """

    source: str
    start: int
    budget: float
    policy: str
    seconds: float
    results: int
    fresh: int
    probes: int
    spent: float
    scale: float
    loosened: float


def load_readings(path: Path | None) -> Readings:
    """Readings from a Parquet file, from the lab's published `data.txt`, or made up when there is no path."""
    if path is None:
        mote, degree = _made_up()
        return Readings("made up: 52 motes, a day's course, noise", _group(mote), degree)
    if not path.is_file():
        raise QueryError(f"there is no file '{path}' with sensor readings; leave --data out for made-up ones")
    table = _read(path)
    valid = pc.and_(pc.is_valid(table["moteid"]), pc.is_valid(table["temperature"]))
    # As the paper does: no missing values, and none that no room has.
    kept = table.filter(
        pc.and_(valid, pc.and_(pc.greater(table["temperature"], 0), pc.less(table["temperature"], 60)))
    )
    mote = kept["moteid"].to_numpy().astype(np.int64)
    degree = np.rint(PER_DEGREE * kept["temperature"].to_numpy()).astype(np.int64)
    if len(mote) < 20 * ROWS:
        raise QueryError(f"'{path}' has {len(mote)} usable readings; the experiment needs {20 * ROWS}")
    return Readings(path.name, _group(mote), degree)


def play_sensors(
    readings: Readings, starts: int, seconds: float, budgets: tuple[float, ...], tell: Callable[[str], None]
) -> Iterator[Mark]:
    """Every policy at every budget, from several places in the file; divided anew each second."""
    for start in range(starts):
        stage = _staged(readings, FACTOR, (start + 0.5) / starts)
        for budget in budgets:
            for policy in POLICIES_COMPARED:
                tell(f"figure 8, start {start}: {policy} at {budget:g}")
                yield from _marks(readings, start, stage, budget, policy, seconds)


def measure_stale_sensors(
    readings: Readings, starts: int, factors: Sequence[float], tell: Callable[[str], None]
) -> Iterator[Staleness]:
    """Figure 9.c: the stale share with 300 probes a second."""
    for start in range(starts):
        for factor in factors:
            stage = _staged(readings, factor, (start + 0.5) / starts)
            for policy in (*RIVALS, GREPP, JAQPOT):
                tell(f"figure 9, sensors, start {start}: {policy} at {factor}x")
                graph = readings.graph(round(stage.batch * _EVERY * RATE))
                division = _divide(policy, graph, BUDGET, factor)
                _, settled = stage.play(factor * ROWS / min(graph.rates.values()), division.allowance)
                played, _ = settled.play(1.0, division.allowance)
                yield Staleness.of("sensors", start, policy, factor, played, division)


def _marks(
    readings: Readings, start: int, stage: Stage, budget: float, policy: str, seconds: float
) -> Iterator[Mark]:
    results = fresh = probes = 0
    loop = Loop()
    for step in range(1, round(seconds / _INTERVAL) + 1):
        graph = readings.graph(round(stage.batch * _EVERY * RATE))
        division = _divide(policy, graph, loop.scale * budget, FACTOR)
        played, stage = stage.play(_INTERVAL, division.allowance)
        loop = loop.after(budget * played.seconds, played.probes)
        results += played.results + played.stale
        fresh += played.results
        probes += played.probes
        yield Mark(
            source=readings.source,
            start=start,
            budget=budget,
            policy=policy,
            seconds=step * _INTERVAL,
            results=results,
            fresh=fresh,
            probes=probes,
            spent=loop.spent,
            scale=loop.scale,
            loosened=division.loosened,
        )


def _divide(policy: str, graph: JoinGraph, budget: float, factor: float) -> Division:
    fresh = {name: factor * graph.window_seconds(name) for name in graph.streams}
    division = divide(policy, graph, TREE, budget, fresh)
    return replace(division, allowance=replace(division.allowance, choose="hash"))


def _staged(readings: Readings, factor: float, place: float) -> Stage:
    """A query whose states are full and fresh, some way into the file."""
    asked = weir.join(
        streams=dict.fromkeys(GROUPS, _SCHEMA),
        on="A.degree = B.degree AND C.degree = D.degree AND B.degree = C.degree AND D.degree = E.degree",
        within=RowWindow(ROWS),
        fresh=RowWindow(round(factor * ROWS)),
        select="true AS found",
        plan=TREE,
    )
    assert isinstance(asked, LocalJoin)
    first = round(place * readings.length / _EVERY)

    def feed(number: int) -> Delta:
        return readings.between(round(number * _EVERY * RATE), round((number + 1) * _EVERY * RATE))

    stage = Stage(asked.start(), feed, _EVERY, first)
    window = len(GROUPS) * ROWS / RATE
    graph = readings.graph(round((first * _EVERY + 1.2 * window) * RATE))
    _, stored = stage.play(1.2 * window, Allowance(dict.fromkeys(hops(TREE), 0.0)))
    # Enough to fill every state a few times; all there is would be millions a second.
    _, full = stored.play(window / 3, _divide("EqualHJ", graph, _FILLING, factor).allowance)
    return full


def _read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
    else:
        table = pcsv.read_csv(
            path,
            read_options=pcsv.ReadOptions(column_names=list(_MIT)),
            parse_options=pcsv.ParseOptions(delimiter=" ", invalid_row_handler=lambda _: "skip"),
            convert_options=pcsv.ConvertOptions(
                include_columns=["date", "time", "moteid", "temperature"],
                column_types={
                    "date": pa.string(),
                    "time": pa.string(),
                    "moteid": pa.int64(),
                    "temperature": pa.float64(),
                },
            ),
        ).sort_by([("date", "ascending"), ("time", "ascending")])
    for column in ("moteid", "temperature"):
        if column not in table.column_names:
            raise QueryError(f"'{path}' has no column '{column}', so it is not the lab's data")
    return table


def _group(mote: NDArray[np.int64]) -> NDArray[np.int64]:
    """Five groups of like size; motes are numbered along the walls, so neighbours have near numbers."""
    names, place = np.unique(mote, return_inverse=True)
    return np.asarray(place * len(GROUPS) // len(names), np.int64)


def _made_up() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(8)
    slot = np.repeat(np.arange(_SLOTS), _MOTES)
    mote = np.tile(np.arange(_MOTES), _SLOTS)
    day = 20 + 3 * np.sin(2 * np.pi * slot * 30 / 86_400)
    degree = np.rint(PER_DEGREE * (day + rng.normal(0, 1, _MOTES)[mote] + rng.normal(0, 0.2, len(slot))))
    return mote, degree.astype(np.int64)
