"""`weir-lab storm`: one query through six phases on Spark, with adaptation and without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from weir_lab.cli.experiment import check_ready, repeat

if TYPE_CHECKING:
    from weir_lab.storm.experiment import Report


def storm(quick: bool, out: Path, console: Console) -> None:
    """Send a query through a storm, and write what it did into a folder."""
    check_ready(out)
    # Not at the top: an experiment may import what no other command should pay for.
    from weir_lab.storm.experiment import FULL, QUICK, run

    repeat(lambda tell: run(QUICK if quick else FULL, out, tell), show, out, console)


def show(report: Report, console: Console) -> None:
    """Print the measurements and whether the aims hold."""
    console.print(f"Sizes: {report.sizes.describe()}.", highlight=False)
    console.print(_lanes(report))
    console.print(_decisions(report))
    console.print(_aims(report))


def _lanes(report: Report) -> Table:
    table = Table(title="Each lane, phase by phase", title_justify="left")
    for heading in ("lane", "phase"):
        table.add_column(heading)
    for heading in ("batches", "longest [s]", "rows in", "results", "how it went"):
        table.add_column(heading, justify="left" if heading == "how it went" else "right")
    for lane, counts in report.results.items():
        mine = [batch for batch in report.batches if batch.lane == lane]
        for place, phase in enumerate(report.schedule.phases):
            here = [batch for batch in mine if phase.begin <= batch.tick < phase.end]
            table.add_row(
                "" if place else lane,
                phase.name,
                str(len(here)),
                f"{max((batch.seconds for batch in here), default=0.0):.2f}",
                f"{sum(batch.rows_in for batch in here):,}",
                f"{sum(counts[phase.begin : phase.end]):,}",
                "" if place else report.behind[lane],
            )
        table.add_section()
    return table


def _decisions(report: Report) -> Table:
    from weir_lab.storm.record import find_changes
    from weir_lab.storm.setup import ADAPTIVE

    table = Table(title="What was decided", title_justify="left")
    for heading in ("batch", "phase", "why"):
        table.add_column(heading)
    for _, after in find_changes([batch for batch in report.batches if batch.lane == ADAPTIVE]):
        table.add_row(str(after.batch), after.phase, after.reason)
    return table


def _aims(report: Report) -> Table:
    table = Table(title="What had to hold", title_justify="left")
    for heading in ("what", "wanted", "found", "reached", "why, as far as the data tell"):
        table.add_column(heading)
    for aim in report.aims:
        table.add_row(aim.what, aim.paper, aim.measured, "yes" if aim.reached else "no", aim.why)
    return table
