"""Figures 11 to 16 and table II: what the kernel puts out on the machine, harvesting and dropping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import process_time

from weir_lab.grubjoin.machine import Machine
from weir_lab.grubjoin.play import HARVEST, RANDOM_DROP, Period, Way, play
from weir_lab.grubjoin.streams import ALIGNED, DEVIATIONS, LAGGED, WINDOW, Streams

WAYS = (HARVEST, RANDOM_DROP)
SCENARIOS = {"aligned": ALIGNED, "lagged": LAGGED}
# Streams at this rate just fit, aligned and three of them.
FITTING = 100.0
ROOM = 1.05
# Input buffers of Gedik et al. 2007, in rows.
BUFFER = 10.0
MULTIPLIERS = (1, 2, 4, 6, 8, 10)


@dataclass(frozen=True, slots=True)
class Point:
    """One run: results a second in the paper's rows, the share of rows dropped, what was used of the CPU.

    `x` is what the figure varies, and `series` what its lines are.
    """

    figure: str
    series: str
    way: str
    x: float
    seed: int
    output: float
    dropped: float
    throttle: float
    load: float


@dataclass(frozen=True, slots=True)
class Bench:
    """How runs are made: thinned streams, the machine for them, and how much slower it is than this computer.

    A machine for thinned streams makes fewer comparisons, each of which stands for `thin` times `thin` of the
    paper's. Decisions do not become thinner, so they are charged by the machine that the paper's rows need.
    """

    thin: float
    machine: Machine
    slowdown: float
    seconds: float
    warm: float

    def streams(self, lags: Sequence[float], rate: float, seed: int, third: float = DEVIATIONS[2]) -> Streams:
        """Streams of one rate; `third` is the deviation of the third."""
        blurs = (*DEVIATIONS[:2], third, *DEVIATIONS[3:])[: len(lags)]
        return Streams(tuple(lags), blurs, ((0.0, rate),), self.thin, seed)


def bench(thin: float, seconds: float, warm: float, every: float = 0.25) -> Bench:
    """Measure what the full join at the fitting rate takes, and build the machine that just does it."""
    streams = Streams(ALIGNED[:3], DEVIATIONS[:3], ((0.0, FITTING),), thin)
    query = streams.join().start()
    compared, took = 0, 0.0
    for number in range(round((WINDOW + 5.0) / every)):
        started = process_time()
        for _ in query.chunks(streams.between(number * every, (number + 1) * every)):
            pass
        if number * every >= WINDOW:
            took += process_time() - started
            assert query.last_report is not None
            compared += sum(hop.comparisons for hop in query.last_report.per_hop.values())
    speed = ROOM * compared / 5.0
    machine = Machine(speed, max(1.0, round(BUFFER / thin)), every)
    return Bench(thin, machine, (compared / took) / (speed * thin**2), seconds, warm)


def measure(
    bench: Bench,
    figure: str,
    series: str,
    x: float,
    streams: Streams,
    way: Way,
    machine: Machine | None = None,
) -> Point:
    """One run; what comes before the end of the warm-up does not count."""
    machine = machine or bench.machine
    periods = [
        played for played in play(streams, machine, way, bench.seconds) if played.time > bench.warm + 1e-9
    ]
    return point(figure, series, x, streams, way, machine, periods)


def point(
    figure: str,
    series: str,
    x: float,
    streams: Streams,
    way: Way,
    machine: Machine,
    periods: Sequence[Period],
) -> Point:
    """What some periods came to."""
    seconds = len(periods) * way.period
    return Point(
        figure=figure,
        series=series,
        way=way.name,
        x=x,
        seed=streams.seed,
        output=streams.thin * sum(played.results for played in periods) / seconds,
        dropped=sum(played.dropped for played in periods) / max(1, sum(played.arrived for played in periods)),
        throttle=median(played.throttle for played in periods),
        load=sum(played.comparisons for played in periods) / seconds / machine.speed,
    )


def figure11(bench: Bench, rates: Sequence[float], seeds: Sequence[int]) -> Iterator[Point]:
    """Over the input rate."""
    for scenario, lags in SCENARIOS.items():
        for rate in rates:
            for seed in seeds:
                for way in WAYS:
                    streams = bench.streams(lags[:3], rate, seed)
                    yield measure(bench, "11", scenario, rate, streams, Way(way))


def figure12(bench: Bench, deviations: Sequence[float], seeds: Sequence[int]) -> Iterator[Point]:
    """Over the deviation of the third stream, lagged, at 200 rows a second."""
    for third in deviations:
        for seed in seeds:
            for way in WAYS:
                streams = bench.streams(LAGGED[:3], 200.0, seed, third)
                yield measure(bench, "12", "lagged", third, streams, Way(way))


def figure13(bench: Bench, counts: Sequence[int], seeds: Sequence[int]) -> Iterator[Point]:
    """Over the number of streams, at 100 rows a second."""
    for scenario, lags in SCENARIOS.items():
        for count in counts:
            for seed in seeds:
                for way in WAYS:
                    streams = bench.streams(lags[:count], FITTING, seed)
                    yield measure(bench, "13", scenario, count, streams, Way(way))


def figure14(
    bench: Bench, basics: Sequence[float], deviations: Sequence[float], seeds: Sequence[int]
) -> Iterator[Point]:
    """Over the length of basic windows, lagged, at 200 rows a second; decisions are charged."""
    for third in deviations:
        for basic in basics:
            for seed in seeds:
                streams = bench.streams(LAGGED[:3], 200.0, seed, third)
                way = Way(HARVEST, basic=basic, slowdown=bench.slowdown)
                yield measure(bench, "14", f"κ3 = {third:g}", basic, streams, way)


def figure15(
    bench: Bench, counts: Sequence[int], periods: Sequence[float], seeds: Sequence[int]
) -> Iterator[Point]:
    """Over the adaptation period, while rates go 100, 150, 50, eight seconds each; decisions are charged."""
    start = bench.warm
    rates = ((0.0, 100.0), (start + 8, 150.0), (start + 16, 50.0))
    for count in counts:
        for period in periods:
            for seed in seeds:
                streams = replace(bench.streams(LAGGED[:count], 100.0, seed), rates=rates)
                way = Way(HARVEST, period=period, slowdown=bench.slowdown)
                longer = replace(bench, seconds=start + 24)
                yield measure(longer, "15", f"m = {count}", period, streams, way)


def figure16(
    bench: Bench, buffers: Sequence[float], rates: Sequence[float], seeds: Sequence[int]
) -> Iterator[Point]:
    """Over the size of the buffers in seconds: what is dropped in 30 s from z = 1 and empty buffers on."""
    start = replace(bench, seconds=30.0, warm=0.0)
    for rate in rates:
        for buffer in buffers:
            for seed in seeds:
                streams = bench.streams(LAGGED[:3], rate, seed)
                rows = max(bench.machine.buffer, buffer * rate / bench.thin)
                machine = replace(bench.machine, buffer=rows)
                yield measure(start, "16", f"{rate:g} rows/s", buffer, streams, Way(HARVEST), machine)


def table2(bench: Bench, rate: float, multipliers: Sequence[int], seeds: Sequence[int]) -> Iterator[Point]:
    """Over the cost of a comparison, lagged, at the highest rate at which both ways do the same."""
    for times in multipliers:
        for seed in seeds:
            for way in WAYS:
                machine = replace(bench.machine, speed=bench.machine.speed / times)
                streams = bench.streams(LAGGED[:3], rate, seed)
                yield measure(bench, "II", f"{rate:g} rows/s", times, streams, Way(way), machine)


def find_equal_rate(points: Sequence[Point], within: float = 0.03) -> float:
    """The highest rate of figure 11, lagged, at which harvesting and dropping put out about the same."""
    rates = sorted({p.x for p in points if p.figure == "11"})
    equal = [rate for rate in rates if abs(gain(points, "11", "lagged", rate)) <= within]
    return max(equal, default=rates[0])


def reuse_points(
    points: Sequence[Point], series: str, x: float, figure: str, to: float, named: str
) -> list[Point]:
    """Runs of figure 11 that another figure would make again."""
    mine = [p for p in points if (p.figure, p.series, p.x) == ("11", series, x)]
    return [replace(p, figure=figure, x=to, series=named) for p in mine]


def gain(points: Sequence[Point], figure: str, series: str, x: float) -> float:
    """How much more harvesting puts out than random dropping, median against median."""
    mine, other = (median_of(points, figure, series, x, way) for way in WAYS)
    return mine / other - 1 if other else 0.0


def median_of(
    points: Sequence[Point],
    figure: str,
    series: str,
    x: float,
    way: str = HARVEST,
    what: Callable[[Point], float] = lambda p: p.output,
) -> float:
    """The median over seeds."""
    values = [what(p) for p in points if (p.figure, p.series, p.x, p.way) == (figure, series, x, way)]
    return median(values) if values else 0.0
