"""`weir-lab driver`: the experiments of Valsomatzis and Gounaris 2013, beside what the paper says."""

from __future__ import annotations

from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from weir_lab.cli.experiment import aims_table, check_ready, repeat

if TYPE_CHECKING:
    from weir_lab.driver.experiment import Report
    from weir_lab.driver.settings import Figures


def driver(quick: bool, out: Path, console: Console) -> None:
    """Repeat the experiments of Valsomatzis and Gounaris 2013 into a folder."""
    check_ready(out)
    # Not at the top: an experiment may import what no other command should pay for.
    from weir_lab.driver.experiment import FULL, QUICK, run

    repeat(lambda tell: run(QUICK if quick else FULL, out, tell), show, out, console)


def show(report: Report, console: Console) -> None:
    """Print our measurements beside what the paper says."""
    from weir_lab.driver.endless import TOLD
    from weir_lab.driver.settings import MORE, SLIPS, TABLE_4, TABLE_5

    size = report.size
    console.print(SLIPS, highlight=False)
    console.print(
        f"Tables 4 and 5: {size.part:g} of the keys, rows and time of I-IV, {size.uneven_part:g} of V-VI, in "
        f"as many batches as at full size, {size.repeats} repeats; a tuple at a time in plain Python, in "
        "seconds of the processor. In b-models the first halving is as named, the others are drawn.",
        highlight=False,
    )
    for data_set in MORE:
        console.print(
            f"{data_set.name}: keys with {'/'.join(map(str, data_set.per_key))} rows, {data_set.rows[0]:,} "
            f"rows each, {', '.join(data_set.arrivals)}, {size.more_part:g} of it.",
            highlight=False,
        )
    console.print(f"The endless stream: {TOLD}.", highlight=False)
    for ahead in (False, True):
        how = "orders told beforehand" if ahead else "as in the paper"
        console.print(_cells(report, "time", TABLE_4, ahead, f"Table 4: running time, {how} (paper)"))
        console.print(
            _cells(report, "early", TABLE_5, ahead, f"Table 5: results at half time, {how} (paper)")
        )
    console.print(aims_table(report.aims))


def _cells(report: Report, of: str, said: Figures, ahead: bool, title: str) -> Table:
    from weir_lab.driver.aims import average, paper_average
    from weir_lab.driver.settings import BATCH_NAMES, COMPARED, SETS, paper

    table = Table(title=title, title_justify="left")
    for heading in ("batch", "data set"):
        table.add_column(heading)
    for policy in COMPARED:
        table.add_column(policy, justify="right")
    scores = report.measured.scores
    cell_scores = {
        (score.data_set, score.policy, score.batch): getattr(score, of)
        for score in scores
        if score.ahead == ahead
    }
    for batch in BATCH_NAMES.values():
        for data_set in SETS:
            cells = [
                (cell_scores.get((data_set.name, p, batch)), paper(said, data_set.name, p, batch))
                for p in COMPARED
            ]
            table.add_row(batch, data_set.name, *starmap(_cell, cells))
        means = [(average(scores, p, batch, ahead, of), paper_average(said, p, batch)) for p in COMPARED]
        table.add_row(batch, "average", *starmap(_cell, means), end_section=True)
    return table


def _cell(measured: float | None, said: float | None) -> str:
    if measured is None:
        return "N/A"
    return f"{measured:.2f}" if said is None else f"{measured:.2f} ({said:.2f})"
