"""History of a query: one JSON line per change of plan or allowance, for people and their tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from weir.spark.filesystem import Folder

_FILE = "history.jsonl"
_MAX_LINES = 1000


class History:
    """Appends lines to the history; a batch that is decided again replaces its own line."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lines: list[dict[str, Any]] | None = None

    def add(self, batch: int, decided: Mapping[str, Any]) -> None:
        """Add a line, and drop the oldest beyond the limit."""
        if self._lines is None:
            self._lines = self._read()
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        earlier = [line for line in self._lines if line["batch"] < batch]
        self._lines = [*earlier, {"batch": batch, "time": time, **decided}][-_MAX_LINES:]
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in self._lines)
        self._folder.write(_FILE, text.encode())

    def _read(self) -> list[dict[str, Any]]:
        data = self._folder.read(_FILE)
        try:
            return [] if data is None else [json.loads(line) for line in data.decode().splitlines()]
        except ValueError:
            return []  # nothing depends on it, so damage is no reason to stop
