"""`weir-lab qualified`: the experiments of Zhu et al. 2010 as tables, CSV files and pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from weir.plan.two_layer import SEARCHED_STREAMS
from weir_lab.csv import write_csv
from weir_lab.qualified.compare import (
    EXHAUSTIVE,
    OURS,
    PLAIN_STREAMS,
    Outcome,
    Score,
    apart,
    compare,
    disagreements,
    judged,
    misses,
    scores,
    unlimited_seconds,
)
from weir_lab.qualified.overload import Run, Scene, play, scenes
from weir_lab.qualified.settings import Design, Ranges, printed, qualified_share, settings, tuned
from weir_lab.qualified.table2 import SETS, ParameterSet, Plans

DESIGNS: tuple[Design, ...] = ("tuned", "between")
FIGURE_14 = (3, 5, 10)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done: N, settings per N, seconds per search and N, windows that a scene lasts.

    `tuning` is how many settings the search for ranges looks at, `unlimited` how many frontiers are timed
    without limits.
    """

    streams: tuple[int, ...]
    settings: int
    seconds: float
    windows: float
    tuning: int
    unlimited: int


FULL = Size(tuple(range(3, 21)), settings=100, seconds=4.0, windows=6.0, tuning=20, unlimited=5)
QUICK = Size((3, 5, 10, 20), settings=12, seconds=0.8, windows=3.0, tuning=10, unlimited=1)


@dataclass(frozen=True, slots=True)
class Aim:
    """Something that was to be shown, and what came out."""

    what: str
    wanted: str
    found: str
    reached: bool


@dataclass(frozen=True, slots=True)
class Drawn:
    """The ranges of one N, and how many settings drawn from them, and from the printed ones, have a plan."""

    ranges: Ranges
    share: float
    printed_share: float


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found; the files hold it too."""

    sets: dict[ParameterSet, Plans]
    scenes: list[tuple[Scene, list[Run]]]
    drawn: list[Drawn]
    scores: list[Score]
    misses: list[Outcome]
    apart: dict[tuple[Design, int], tuple[int, int]]
    aims: list[Aim]
    size: Size


def run(size: Size, out: Path, tell: Callable[[str], None]) -> Report:
    """Do everything and write it into a folder; `tell` hears what is being done."""
    out.mkdir(parents=True, exist_ok=True)
    sets = {one: Plans.of(one.graph) for one in SETS}
    played: list[tuple[Scene, list[Run]]] = []
    for scene in scenes(size.windows):
        tell(f"running {scene.name}")
        played.append((scene, play(scene)))
    drawn, outcomes = _compared(size, tell)
    report = Report(
        sets=sets,
        scenes=played,
        drawn=drawn,
        scores=scores(outcomes),
        misses=misses(outcomes),
        apart={(d, n): apart(outcomes, d, n) for d in DESIGNS for n in size.streams},
        aims=_aims(drawn, outcomes, size, tell),
        size=size,
    )
    tell("writing files")
    _write(report, outcomes, out)
    _draw(report, outcomes, out)
    return report


def _compared(size: Size, tell: Callable[[str], None]) -> tuple[list[Drawn], list[Outcome]]:
    drawn: list[Drawn] = []
    outcomes: list[Outcome] = []
    for n in size.streams:
        tell(f"comparing searches for {n} streams")
        ranges = tuned(n, size.tuning)
        for design in DESIGNS:
            outcomes += compare(design, n, settings(design, ranges, size.settings), size.seconds)
        ours = [one for one in outcomes if (one.design, one.streams, one.algorithm) == ("tuned", n, OURS)]
        share = sum(one.taken is not None for one in ours) / len(ours)
        theirs = settings("printed", printed(n), size.settings)
        drawn.append(Drawn(ranges, share, qualified_share(theirs)))
    return drawn, outcomes


def _aims(drawn: list[Drawn], outcomes: list[Outcome], size: Size, tell: Callable[[str], None]) -> list[Aim]:
    found = scores(outcomes)
    ours = [one for one in found if one.algorithm == OURS]
    small = [one for one in outcomes if one.streams <= SEARCHED_STREAMS]
    large = [one for one in outcomes if one.streams > SEARCHED_STREAMS]
    aims = [
        _found(
            f"N <= {SEARCHED_STREAMS}, where it may end with the exhaustive search itself",
            *judged(small, OURS, True),
        ),
        _found(f"N > {SEARCHED_STREAMS}, told by the exhaustive search", *judged(large, OURS, True)),
        _found(f"N > {SEARCHED_STREAMS}, told only by what any search found", *judged(large, OURS, False)),
    ]
    for score in ours:
        if score.streams == 20:
            spent = 1e3 * score.median_seconds
            told = f"median {spent:.0f} ms, longest {1e3 * score.longest_seconds:.0f} ms"
            aims.append(Aim(f"two-layer, ours, at N = 20 ({score.design})", "under 50 ms", told, spent < 50))
    tell("the frontier without limits for 10 streams")
    ten = next((one.ranges for one in drawn if one.ranges.streams == 10), None)
    for score in found:
        if (score.streams, score.algorithm) == (10, EXHAUSTIVE):
            told = f"median {score.median_seconds:.2f} s, longest {score.longest_seconds:.2f} s"
            what = f"exhaustive search at N = 10, within limits ({score.design})"
            aims.append(Aim(what, "under 10 s", told, score.median_seconds < 10))
    if ten is not None:
        seconds = unlimited_seconds(settings("tuned", ten, size.unlimited))
        what = "exhaustive search at N = 10, without limits"
        aims.append(Aim(what, "under 10 s", f"median {seconds:.2f} s of {size.unlimited}", seconds < 10))
    few = [one.ranges for one in drawn if one.ranges.streams <= PLAIN_STREAMS]
    tried = [s for ranges in few for design in DESIGNS for s in settings(design, ranges, 10)]
    different = disagreements(tried)
    what = f"exhaustive search equals the plain one, N <= {PLAIN_STREAMS}"
    aims.append(Aim(what, "always", f"{len(tried) - different} of {len(tried)} settings", not different))
    return aims


def _found(where: str, hit: int, there: int) -> Aim:
    share = f" ({100 * hit / there:.1f} %)" if there else ""
    what = f"two-layer, ours, finds a plan where one exists: {where}"
    return Aim(what, "100 %", f"{hit} of {there} settings{share}", there > 0 and hit == there)


def _write(report: Report, outcomes: list[Outcome], out: Path) -> None:
    write_csv(
        out / "table2.csv",
        [
            {"set": one.number, "plan": p.kind, "tree": str(p.tree), "cpu": p.cpu, "memory": p.memory}
            for one, plans in report.sets.items()
            for p in plans.all
        ],
    )
    write_csv(
        out / "ticks.csv",
        [
            {"scene": scene.name, "plan": one.plan.kind, "tree": str(one.plan.tree), **asdict(tick)}
            for scene, runs in report.scenes
            for one in runs
            for tick in one.ticks
        ],
    )
    write_csv(
        out / "ranges.csv",
        [
            {
                "streams": one.ranges.streams,
                "window": one.ranges.window,
                "selectivity_below": one.ranges.selectivity,
                "cpu": one.ranges.limits.cpu,
                "memory": one.ranges.limits.memory,
                "share_qualified": one.share,
                "printed_ranges_share_qualified": one.printed_share,
            }
            for one in report.drawn
        ],
    )
    write_csv(out / "scores.csv", [asdict(one) | {"percentage": one.percentage} for one in report.scores])
    write_csv(out / "outcomes.csv", [_outcome(one) for one in outcomes])
    write_csv(out / "misses.csv", [_outcome(one) | _graph(one) for one in report.misses])


def _outcome(one: Outcome) -> dict[str, object]:
    cpu, memory = one.taken or (None, None)
    return {
        "design": one.design,
        "streams": one.streams,
        "setting": one.setting.number,
        "algorithm": one.algorithm,
        "seconds": one.seconds,
        "cpu": cpu,
        "memory": memory,
        "cpu_limit": one.setting.limits.cpu,
        "memory_limit": one.setting.limits.memory,
    }


def _graph(one: Outcome) -> dict[str, object]:
    graph = one.setting.graph
    return {
        "window": graph.window_seconds(graph.streams[0]),
        "rates": json.dumps(dict(graph.rates)),
        "selectivities": json.dumps({"".join(sorted(e)): graph.selectivities[e] for e in graph.edges}),
    }


def _draw(report: Report, outcomes: list[Outcome], out: Path) -> None:
    # Not at the top: who only reads the figures needs nothing to draw with.
    from weir_lab.qualified.pictures import draw_comparison, draw_plans, draw_scene

    for scene, runs in report.scenes:
        draw_scene(scene, runs, out / f"{scene.name.replace(', ', '_').replace(' ', '')}.png")
    sizes = [n for n in FIGURE_14 if n in report.size.streams]
    for design in DESIGNS:
        draw_comparison(design, report.scores, out / f"figure13_{design}.png")
        draw_plans(design, outcomes, sizes, out / f"figure14_{design}.png")
