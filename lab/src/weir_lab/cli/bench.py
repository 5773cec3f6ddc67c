"""`weir-lab bench`: run a benchmark and print its figures."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from weir.errors import QueryError
from weir_lab.bench.figure import Figure, to_json
from weir_lab.csv import write_records

if TYPE_CHECKING:
    from weir_lab.bench.peers import Measured as PeerRun
    from weir_lab.bench.psp import Measured


def kernel(quick: bool, json_file: Path | None, console: Console) -> None:
    """Measure the join kernel beside its peers."""
    check_writable(json_file)
    # Not at the top: a benchmark may import what no other command should pay for.
    from weir_lab.bench.kernel import run

    report(run(quick), json_file, console)


def spark(quick: bool, json_file: Path | None, console: Console) -> None:
    """Measure joins on Spark beside Spark's own."""
    check_writable(json_file)
    from weir_lab.bench.spark import run

    report(run(quick), json_file, console)


def shapes(data: Path | None, quick: bool, json_file: Path | None, console: Console) -> None:
    """Measure joins of differently shaped data beside DuckDB."""
    check_writable(json_file)
    from weir_lab.bench.shapes import run

    report(run(data, quick), json_file, console)


def batches(quick: bool, json_file: Path | None, console: Console) -> None:
    """Measure what small batches cost on Spark."""
    check_writable(json_file)
    from weir_lab.bench.batches import run

    report(run(quick), json_file, console)


def wide(quick: bool, json_file: Path | None, console: Console) -> None:
    """Measure the memory that many results and wide rows take."""
    check_writable(json_file)
    from weir_lab.bench.wide import run

    report(run(quick), json_file, console)


def peers(quick: bool, json_file: Path | None, console: Console) -> None:
    """Measure a join on weir beside Flink, Spark's own joins and DuckDB."""
    check_writable(json_file)
    from weir_lab.bench.peers import figures, run

    outcome = run(quick)
    console.print(_peer_rates(outcome.runs))
    report(figures(outcome), json_file, console)


def model(quick: bool, json_file: Path | None, console: Console) -> None:
    """Compare what the cost model predicts with what random queries take."""
    check_writable(json_file)
    from weir_lab.bench.model import run

    report(run(quick), json_file, console)


def soak(
    quick: bool,
    hours: float | None,
    local: bool,
    csv_file: Path | None,
    json_file: Path | None,
    console: Console,
) -> None:
    """Run a join for long, and see that nothing grows; with `hours`, one that changes its plan on the way."""
    for file in (csv_file, json_file):
        check_writable(file)
    if hours is not None:
        from weir_lab.bench.adaptive_soak import run as run_changing

        return report(run_changing(hours, local, csv_file), json_file, console)
    if local:
        raise QueryError("--local is for a soak of --hours; the other one looks at Spark's processes")
    from weir_lab.bench.soak import run

    return report(run(quick, csv_file), json_file, console)


def attack(quick: bool, only: str | None, seed: int, json_file: Path | None, console: Console) -> bool:
    """Attack queries on Spark in every way; False if one of the attacks does not end as it must."""
    check_writable(json_file)
    from weir_lab.attack.experiment import list_bad, run

    reports = run(quick, only, seed)
    for trial in list_bad(reports):
        console.print(
            f"{trial.attack}: {trial.what}: {trial.end}: {trial.said}", markup=False, highlight=False
        )
    table = Table(title="What had to hold", title_justify="left")
    for heading in ("attack", "wanted", "found", "reached"):
        table.add_column(heading)
    for report in reports:
        wanted = f"{report.enough} times: {report.wanted}"
        table.add_row(report.attack, wanted, report.describe(), "yes" if report.is_reached else "no")
    console.print(table)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(report) for report in reports], indent=2) + "\n")
    return all(report.is_reached for report in reports)


def psp(quick: bool, csv_file: Path | None, json_file: Path | None, console: Console) -> None:
    """Images joined by a Python predicate, by every spread and by Spark itself."""
    for file in (csv_file, json_file):
        check_writable(file)
    from weir_lab.bench.psp import describe_queries, figures, run

    batches = run(quick)
    console.print(describe_queries(), highlight=False)
    console.print(_rates(batches))
    report(figures(batches), json_file, console)
    if csv_file is not None:
        write_records(csv_file, batches)


def check_writable(file: Path | None) -> None:
    """Refuse a file that could not be written, before minutes are spent on what should go into it."""
    if file is None:
        return
    folder = file.parent
    if not folder.is_dir():
        raise QueryError(f"cannot write '{file}': there is no folder '{folder}'")
    if file.is_dir():
        raise QueryError(f"cannot write '{file}': it is a folder")
    if not os.access(file if file.exists() else folder, os.W_OK):
        raise QueryError(f"cannot write '{file}': permission denied")


def report(figures: Sequence[Figure], json_file: Path | None, console: Console) -> None:
    """Print figures as a table, and write them to a file if one is named."""
    console.print(_table(figures))
    if json_file is not None:
        json_file.write_text(to_json(figures) + "\n")


def _rates(batches: Sequence[Measured]) -> Table:
    from weir_lab.bench.psp import summarise

    table = Table(title="Medians of the measured batches", title_justify="left")
    for heading in ("streams", "pixels", "images/s", "query"):
        table.add_column(heading)
    for heading in ("batches", "rows/s", "latency [s]", "results/s", "state rows"):
        table.add_column(heading, justify="right")
    for line in summarise(batches):
        table.add_row(*line)
    return table


def _peer_rates(runs: Sequence[PeerRun]) -> Table:
    from weir_lab.bench.peers import summarise

    table = Table(title="Medians of the runs; memory and CPU of all processes", title_justify="left")
    for heading in ("setting", "query"):
        table.add_column(heading)
    for heading in ("runs", "rows/s with start", "rows/s steady", "peak MB", "CPU s", "results"):
        table.add_column(heading, justify="right")
    for line in summarise(runs):
        table.add_row(*line)
    return table


def _table(figures: Sequence[Figure]) -> Table:
    table = Table()
    for heading in ("figure", "ratio", "quartiles", "aim", "reached", "note"):
        table.add_column(heading, justify="right" if heading in ("ratio", "quartiles") else "left")
    for figure in figures:
        table.add_row(
            figure.name,
            f"{figure.ratio:.2f}",
            f"{figure.low:.2f} – {figure.high:.2f}",
            f"{figure.wanted} {figure.aim:g}",
            "yes" if figure.is_reached else "no",
            figure.note,
        )
    return table
