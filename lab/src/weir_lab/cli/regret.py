"""`weir-lab regret`: budgets and recall, held against a known truth and the best fixed decision."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from weir_lab.cli.experiment import check_ready, repeat

if TYPE_CHECKING:
    from weir_lab.regret.experiment import Report


def regret(quick: bool, only: str | None, out: Path, json_file: Path | None, console: Console) -> None:
    """Run the testbed into a folder, and print which bars are reached."""
    check_ready(out)
    # Not at the top: an experiment may import what no other command should pay for.
    from weir_lab.regret.experiment import FULL, QUICK, run

    def show_and_write(report: Report, console: Console) -> None:
        show(report, console)
        if json_file is not None:
            json_file.write_text(json.dumps(describe(report), indent=2))

    repeat(lambda tell: run(QUICK if quick else FULL, out, only, tell), show_and_write, out, console)


def describe(report: Report) -> dict[str, object]:
    """The bars and the regret of every scenario, as JSON values."""
    bars = [
        {"bar": bar.what, "wanted": bar.paper, "found": bar.measured, "reached": bar.reached}
        for bar in report.bars
    ]
    return {"bars": bars, "regret": [{**asdict(each), "ratio": each.ratio} for each in report.regrets]}


def show(report: Report, console: Console) -> None:
    """Print the regret of every scenario, and the bars."""
    if report.regrets:
        console.print(_regrets(report))
    console.print(_bars(report))


def _regrets(report: Report) -> Table:
    table = Table(title="Weir beside the best fixed decision within the budget", title_justify="left")
    for heading in ("scenario", "machine", "phase", "best fixed decision"):
        table.add_column(heading)
    for heading in ("its recall", "weir's", "ratio"):
        table.add_column(heading, justify="right")
    for each in report.regrets:
        exact = max(each.exact, 1)
        shares = f"{each.best / exact:.2f}", f"{each.results / exact:.2f}", f"{each.ratio:.2f}"
        table.add_row(each.scenario, each.machine, each.phase, each.decision, *shares)
    return table


def _bars(report: Report) -> Table:
    table = Table(title="What had to hold", title_justify="left")
    for heading in ("bar", "wanted", "found", "reached"):
        table.add_column(heading)
    for bar in report.bars:
        table.add_row(bar.what, bar.paper, bar.measured, "yes" if bar.reached else "no")
    return table
