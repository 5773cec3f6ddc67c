"""What was measured as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any


def write_csv(file: Path, rows: Sequence[Any]) -> None:
    """One line per row; all are dataclasses of one kind."""
    found = [asdict(row) for row in rows]
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]) if found else [])
        writer.writeheader()
        writer.writerows(found)
