"""`weir-lab qualified`: the experiments of Zhu et al. 2010, beside what the paper says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from weir_lab.cli.experiment import check_ready, repeat

if TYPE_CHECKING:
    from weir_lab.qualified.experiment import Report
    from weir_lab.qualified.table2 import Plans, Region

_SAYS = {
    "a": "both qualify",
    "b": "only the bjtree",
    "c": "only the mjoin",
    "d": "only a jtree",
    "e": "none",
}
_PAPER_RUNS = {
    "set 1": "same throughput; bjtree holds more",
    "set 2": "bjtree's throughput > 100 % higher; mjoin queues",
    "set 2, rare AB": "(the same)",
    "set 3": "bjtree out of memory at about 50 s; mjoin goes on",
    "set 4, short": "bjtree out of memory at about 80 s; jtree above mjoin",
}


def qualified(quick: bool, out: Path, console: Console) -> None:
    """Repeat the experiments of Zhu et al. 2010 into a folder."""
    check_ready(out)
    # Not at the top: an experiment may import what no other command should pay for.
    from weir_lab.qualified.experiment import FULL, QUICK, run

    def shown(report: Report, console: Console) -> None:
        show(report, console)
        if quick:
            told = ", ".join(map(str, report.size.streams))
            console.print(
                f"--quick: {report.size.settings} settings for N = {told}, not 100 for each of 3 to 20."
            )

    repeat(lambda tell: run(QUICK if quick else FULL, out, tell), shown, out, console)


def show(report: Report, console: Console) -> None:
    """Print our measurements beside what the paper says."""
    for table in (_plans(report), _situations(report), _runs(report), _ranges(report), _scores(report)):
        console.print(table)
    console.print(_aims(report))
    console.print(_missed(report), highlight=False)


def _plans(report: Report) -> Table:
    from weir_lab.qualified.table2 import CPU_AVAILABLE

    table = _table(
        "Table 2: what plans take", "set", "plan", "tree", ">CPU s/s", ">memory tuples", "CPU 1 s/s"
    )
    for printed_set, plans in report.sets.items():
        for plan in plans.all:
            table.add_row(
                str(printed_set.number),
                plan.kind,
                str(plan.tree),
                f"{plan.cpu:.4f}",
                f"{plan.memory:,.0f}",
                "fits" if plan.cpu <= CPU_AVAILABLE else "over",
            )
        table.add_section()
    return table


def _situations(report: Report) -> Table:
    from weir.plan.limits import Limits
    from weir_lab.qualified.table2 import CPU_AVAILABLE

    table = _table(
        "Figure 5: which situation arises (memory in tuples; M_a says how large a tuple would have to be)",
        "set", "situation", "at CPU 1 s/s, ample memory", "budgets at which it arises", "tuple bytes for M_a",
    )  # fmt: skip
    for printed_set, plans in report.sets.items():
        situation_found = plans.situation(Limits(CPU_AVAILABLE))
        for situation in "abcd":
            region = plans.region(situation)  # type: ignore[arg-type]
            meant = situation == printed_set.meant
            table.add_row(
                str(printed_set.number) if situation == "a" else "",
                f"({situation}) {_SAYS[situation]}{'  ← meant' if meant else ''}",
                _verdict(plans, situation_found, printed_set.meant) if situation == "a" else "",
                _region(region),
                _bytes(region, printed_set.megabytes) if region and meant else "",
            )
        table.add_section()
    return table


def _verdict(plans: Plans, situation: str, meant: str) -> str:
    contradicted = "" if situation == meant else f", not ({meant})"
    if situation == "e":
        return f"(e) none{contradicted}: all need about {plans.mjoin.cpu:.0f} s a second"
    return f"({situation}) {_SAYS[situation]}{contradicted}"


def _region(region: Region | None) -> str:
    if region is None:
        return "cannot arise"
    return f"CPU {_span(region.cpu, '.4g')}, memory {_span(region.memory, ',.0f')}"


def _span(ends: tuple[float, float], form: str) -> str:
    low, high = ends
    return f"≥ {low:{form}}" if math.isinf(high) else f"{low:{form}} – {high:{form}}"


def _bytes(region: Region, megabytes: int) -> str:
    low, high = region.tuple_bytes(megabytes)
    return f"{megabytes} MB: ≤ {high:,.0f}" if not low else f"{megabytes} MB: {low:,.0f} – {high:,.0f}"


def _runs(report: Report) -> Table:
    table = _table(
        "Figures 7 and 8: on the virtual clock, the real engine",
        "scene", "machine", "plan", ">CPU s/s model", ">charged", ">results", ">state", ">queued", "end",
        "the paper",
    )  # fmt: skip
    for scene, runs in report.scenes:
        for place, run in enumerate(runs):
            charged = run.cpu_per_second(scene.graph.window_seconds("A"))
            memory = "" if math.isinf(scene.limits.memory) else f", {scene.limits.memory:,.0f} rows"
            table.add_row(
                f"{scene.name}\n{scene.note}" if not place else "",
                f"CPU {scene.limits.cpu:.3g}{memory}" if not place else "",
                f"{run.plan.kind} {run.plan.tree}",
                f"{run.plan.cpu:.4f}",
                "–" if charged is None else f"{charged:.4f}",
                f"{run.last.results:,}",
                f"{run.last.state:,}",
                f"{run.last.queued:,}",
                f"stopped at {run.last.seconds:g} s" if run.last.stopped else f"{run.last.seconds:g} s",
                _PAPER_RUNS[scene.name] if not place else "",
            )
        table.add_section()
    return table


def _ranges(report: Report) -> Table:
    table = _table(
        "Section 6: settings drawn (rates 1 – 100 rows/s, CPU 1 s/s)",
        ">N", ">window s", ">selectivity below", ">memory rows", ">have a plan", ">printed ranges, 1 s",
    )  # fmt: skip
    for drawn in report.drawn:
        ranges = drawn.ranges
        table.add_row(
            str(ranges.streams),
            f"{ranges.window:g}",
            f"{ranges.selectivity:.3g}",
            f"{ranges.limits.memory:,.0f}",
            f"{drawn.share:.0%}",
            f"{drawn.printed_share:.0%}",
        )
    return table


def _scores(report: Report) -> Table:
    table = _table(
        "Figure 13: median CPU time, plans found / existing (the paper: all, as far as JTree-Finder reaches)",
        "limits", ">N",
    )  # fmt: skip
    names = list(dict.fromkeys(score.algorithm for score in report.scores))
    for name in names:
        table.add_column(name, justify="right")
    rows: dict[tuple[str, int], dict[str, str]] = {}
    for score in report.scores:
        told = f"{1e3 * score.median_seconds:.3g} ms  {score.solved}/{score.existing}"
        rows.setdefault((score.design, score.streams), {})[score.algorithm] = told
    for (design, streams), cells in sorted(rows.items(), key=lambda row: (row[0][0] != "tuned", row[0][1])):
        table.add_row(design, str(streams), *(cells.get(name, "") for name in names))
    return table


def _aims(report: Report) -> Table:
    table = _table("Aims", "what", "wanted", "found", "reached")
    for aim in report.aims:
        table.add_row(aim.what, aim.paper, aim.measured, "yes" if aim.reached else "no")
    for (design, streams), (differing, apart) in report.apart.items():
        if streams in (3, 5, 10) and differing:
            table.add_row(
                f"figure 14, N = {streams} ({design}): state-selection takes less memory and more CPU",
                "grows with N",
                f"{apart} of {differing} settings where the plans differ",
                "",
            )
    return table


def _missed(report: Report) -> str:
    if not report.misses:
        return "No plan was missed by either two-layer search."
    by: dict[str, int] = {}
    for miss in report.misses:
        by[miss.algorithm] = by.get(miss.algorithm, 0) + 1
    told = ", ".join(f"{name}: {count}" for name, count in by.items())
    return f"Plans missed ({told}) are listed with their graphs in misses.csv."


def _table(title: str, *headings: str) -> Table:
    """A table; a heading that begins with > stands over numbers."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading.removeprefix(">"), justify="right" if heading.startswith(">") else "left")
    return table
