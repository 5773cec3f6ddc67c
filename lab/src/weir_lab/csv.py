"""Rows as a CSV file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from csv import DictWriter
from dataclasses import asdict
from pathlib import Path
from typing import Any


def write_tables(folder: Path, tables: Iterable[tuple[str, Sequence[Any]]]) -> None:
    """Write rows that are dataclasses, a file for each name."""
    for name, rows in tables:
        write_csv(folder / f"{name}.csv", [asdict(row) for row in rows])


def write_csv(file: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows of the same columns; of no rows comes an empty file."""
    with file.open("w", newline="") as stream:
        writer = DictWriter(stream, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
