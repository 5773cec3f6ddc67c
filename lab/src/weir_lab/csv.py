"""Write measurements as CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from csv import DictWriter
from dataclasses import asdict
from pathlib import Path
from typing import Any


def write_tables(folder: Path, tables: Iterable[tuple[str, Sequence[Any]]]) -> None:
    """Write one file for each name and its records, which are dataclasses of one kind."""
    for name, records in tables:
        write_records(folder / f"{name}.csv", records)


def write_records(file: Path, records: Sequence[Any]) -> None:
    """Write dataclasses of one kind, one line each."""
    write_csv(file, [asdict(record) for record in records])


def write_csv(file: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows of the same columns; without rows the file is empty."""
    with file.open("w", newline="") as stream:
        writer = DictWriter(stream, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
