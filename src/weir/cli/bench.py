"""`weir bench`: runs a benchmark and shows its rows as a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from weir.errors import QueryError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def kernel(quick: bool, json_file: Path | None, console: Console) -> None:
    """Measure the join kernel."""
    try:
        # Not at the top: its peers are an extra, and no other command should pay for importing them.
        from weir.bench.kernel import run
    except ModuleNotFoundError as error:
        raise QueryError(f"this benchmark needs {error.name}: pip install 'weir[bench]'") from error
    report(run(quick), json_file, console)


def report(rows: Sequence[DataclassInstance], json_file: Path | None, console: Console) -> None:
    """Print frozen rows as a table, and write them to a file if one is named."""
    records = [asdict(row) for row in rows]
    console.print(_table(records))
    if json_file is not None:
        json_file.write_text(json.dumps(records, indent=2) + "\n")


def _table(records: Sequence[dict[str, Any]]) -> Table:
    table = Table()
    for name, value in records[0].items() if records else ():
        table.add_column(name.replace("_", " "), justify="left" if isinstance(value, str) else "right")
    for record in records:
        table.add_row(*map(_cell, record.values()))
    return table


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "–" if value is None else str(value)
