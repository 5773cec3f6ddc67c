"""Rows as a CSV file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from csv import DictWriter
from pathlib import Path


def write_csv(file: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows of the same columns; of no rows comes an empty file."""
    with file.open("w", newline="") as stream:
        writer = DictWriter(stream, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
