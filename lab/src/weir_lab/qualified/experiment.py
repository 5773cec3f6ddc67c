"""`weir-lab qualified`: the experiments of Zhu et al. 2010 as tables, CSV files and pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from weir.plan.choose import SEARCHED_STREAMS
from weir_lab.aim import Aim
from weir_lab.csv import write_csv
from weir_lab.qualified.compare import (
    EXHAUSTIVE,
    OURS,
    PLAIN_STREAMS,
    Outcome,
    Score,
    compare,
    count_different_plans,
    count_disagreements,
    count_solved,
    find_misses,
    score_outcomes,
    unlimited_seconds,
)
from weir_lab.qualified.overload import Run, Scene, build_scenes, play
from weir_lab.qualified.settings import (
    Design,
    Ranges,
    draw_settings,
    printed_ranges,
    qualified_share,
    tune_ranges,
)
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
class Drawn:
    """The ranges of one N, and how many settings drawn from them, and from the printed ones, have a plan."""

    ranges: Ranges
    share: float
    printed_share: float


@dataclass(frozen=True, slots=True)
class Report:
    """All measurements; the files hold them too."""

    sets: dict[ParameterSet, Plans]
    scenes: list[tuple[Scene, list[Run]]]
    drawn: list[Drawn]
    scores: list[Score]
    misses: list[Outcome]
    apart: dict[tuple[Design, int], tuple[int, int]]
    aims: list[Aim]
    size: Size


def run(size: Size, out: Path, tell: Callable[[str], None]) -> Report:
    """Run all experiments and write their files; `tell` is called with each step."""
    out.mkdir(parents=True, exist_ok=True)
    sets = {printed_set: Plans.of(printed_set.graph) for printed_set in SETS}
    played: list[tuple[Scene, list[Run]]] = []
    for scene in build_scenes(size.windows):
        tell(f"running {scene.name}")
        played.append((scene, play(scene)))
    drawn, outcomes = _compared(size, tell)
    report = Report(
        sets=sets,
        scenes=played,
        drawn=drawn,
        scores=score_outcomes(outcomes),
        misses=find_misses(outcomes),
        apart={(d, n): count_different_plans(outcomes, d, n) for d in DESIGNS for n in size.streams},
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
        ranges = tune_ranges(n, size.tuning)
        for design in DESIGNS:
            outcomes += compare(design, n, draw_settings(design, ranges, size.settings), size.seconds)
        ours = [
            outcome
            for outcome in outcomes
            if (outcome.design, outcome.streams, outcome.algorithm) == ("tuned", n, OURS)
        ]
        share = sum(outcome.taken is not None for outcome in ours) / len(ours)
        theirs = draw_settings("printed", printed_ranges(n), size.settings)
        drawn.append(Drawn(ranges, share, qualified_share(theirs)))
    return drawn, outcomes


def _aims(drawn: list[Drawn], outcomes: list[Outcome], size: Size, tell: Callable[[str], None]) -> list[Aim]:
    scored = score_outcomes(outcomes)
    ours = [score for score in scored if score.algorithm == OURS]
    small = [outcome for outcome in outcomes if outcome.streams <= SEARCHED_STREAMS]
    large = [outcome for outcome in outcomes if outcome.streams > SEARCHED_STREAMS]
    aims = [
        _found(
            f"N <= {SEARCHED_STREAMS}, where it may end with the exhaustive search itself",
            *count_solved(small, OURS, True),
        ),
        _found(f"N > {SEARCHED_STREAMS}, told by the exhaustive search", *count_solved(large, OURS, True)),
        _found(
            f"N > {SEARCHED_STREAMS}, told only by what any search found", *count_solved(large, OURS, False)
        ),
    ]
    for score in ours:
        if score.streams == 20:
            spent = 1e3 * score.median_seconds
            told = f"median {spent:.0f} ms, longest {1e3 * score.longest_seconds:.0f} ms"
            aims.append(Aim(f"two-layer, ours, at N = 20 ({score.design})", "under 50 ms", told, spent < 50))
    tell("the frontier without limits for 10 streams")
    ten = next((draw.ranges for draw in drawn if draw.ranges.streams == 10), None)
    for score in scored:
        if (score.streams, score.algorithm) == (10, EXHAUSTIVE):
            told = f"median {score.median_seconds:.2f} s, longest {score.longest_seconds:.2f} s"
            what = f"exhaustive search at N = 10, within limits ({score.design})"
            aims.append(Aim(what, "under 10 s", told, score.median_seconds < 10))
    if ten is not None:
        seconds = unlimited_seconds(draw_settings("tuned", ten, size.unlimited))
        what = "exhaustive search at N = 10, without limits"
        aims.append(Aim(what, "under 10 s", f"median {seconds:.2f} s of {size.unlimited}", seconds < 10))
    few = [draw.ranges for draw in drawn if draw.ranges.streams <= PLAIN_STREAMS]
    tried = [s for ranges in few for design in DESIGNS for s in draw_settings(design, ranges, 10)]
    different = count_disagreements(tried)
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
            {"set": printed_set.number, "plan": p.kind, "tree": str(p.tree), "cpu": p.cpu, "memory": p.memory}
            for printed_set, plans in report.sets.items()
            for p in plans.all
        ],
    )
    write_csv(
        out / "ticks.csv",
        [
            {"scene": scene.name, "plan": run.plan.kind, "tree": str(run.plan.tree), **asdict(tick)}
            for scene, runs in report.scenes
            for run in runs
            for tick in run.ticks
        ],
    )
    write_csv(
        out / "ranges.csv",
        [
            {
                "streams": draw.ranges.streams,
                "window": draw.ranges.window,
                "selectivity_below": draw.ranges.selectivity,
                "cpu": draw.ranges.limits.cpu,
                "memory": draw.ranges.limits.memory,
                "share_qualified": draw.share,
                "printed_ranges_share_qualified": draw.printed_share,
            }
            for draw in report.drawn
        ],
    )
    write_csv(
        out / "scores.csv", [asdict(score) | {"percentage": score.percentage} for score in report.scores]
    )
    write_csv(out / "outcomes.csv", [_outcome(outcome) for outcome in outcomes])
    write_csv(out / "misses.csv", [_outcome(outcome) | _graph(outcome) for outcome in report.misses])


def _outcome(outcome: Outcome) -> dict[str, object]:
    cpu, memory = outcome.taken or (None, None)
    return {
        "design": outcome.design,
        "streams": outcome.streams,
        "setting": outcome.setting.number,
        "algorithm": outcome.algorithm,
        "seconds": outcome.seconds,
        "cpu": cpu,
        "memory": memory,
        "cpu_limit": outcome.setting.limits.cpu,
        "memory_limit": outcome.setting.limits.memory,
    }


def _graph(outcome: Outcome) -> dict[str, object]:
    graph = outcome.setting.graph
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
