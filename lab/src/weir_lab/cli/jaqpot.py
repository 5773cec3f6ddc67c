"""`weir-lab jaqpot`: the experiments of Mukherji et al. 2011, beside what the paper says."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from weir_lab.cli.experiment import aims_table, check_ready, repeat

if TYPE_CHECKING:
    from weir_lab.jaqpot.experiment import Report


def jaqpot(quick: bool, out: Path, data: Path | None, console: Console) -> None:
    """Repeat the experiments of Mukherji et al. 2011 into a folder."""
    check_ready(out)
    # Not at the top: an experiment may import what no other command should pay for.
    from weir_lab.jaqpot.experiment import FULL, QUICK, run

    repeat(lambda tell: run(QUICK if quick else FULL, out, data, tell), show, out, console)


def show(report: Report, console: Console) -> None:
    """Print our measurements beside what the paper says."""
    from weir_lab.jaqpot.settings import CORNER
    from weir_lab.jaqpot.shift import RATE, ROWS

    console.print(f"Table 3: {CORNER}.", highlight=False)
    console.print(f"Sensors: {report.source}.", highlight=False)
    console.print(
        f"Figure 6: a minute is {report.size.minute:g} virtual seconds and a window {ROWS / RATE:.2g}; "
        "the budget is 30 % of what the first selectivities "
        "take. Where a budget cannot hold the freshness asked for, JAQPOT and LP keep the tightest that it "
        "can. For windows of rows the fixed and the steady program are one (LP).",
        highlight=False,
    )
    console.print(_throughput(report))
    console.print(aims_table(report.aims))


def _throughput(report: Report) -> Table:
    from weir_lab.jaqpot.policies import POLICIES_COMPARED
    from weir_lab.jaqpot.quartiles import quartiles

    table = Table(
        title="Figure 7: measured share of the saturation throughput, mean (quartiles) over settings",
        title_justify="left",
    )
    table.add_column("plan")
    table.add_column("resources", justify="right")
    for policy in POLICIES_COMPARED:
        table.add_column(policy, justify="right")
    for shape in dict.fromkeys(point.shape for point in report.points):
        for resources in report.size.resources:
            there = [p for p in report.points if (p.shape, p.resources) == (shape, resources)]
            cells = []
            for policy in POLICIES_COMPARED:
                shares = [p.share for p in there if p.policy == policy]
                lower, _, upper = quartiles(shares)
                cells.append(f"{mean(shares):.0%} ({100 * lower:.0f}–{100 * upper:.0f})")
            table.add_row(shape, f"{resources:.0%}", *cells)
    return table
