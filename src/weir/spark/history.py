"""What was decided while a query ran, a JSON line each, in the checkpoint: for people and their tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from weir.spark.filesystem import Folder

_FILE = "history.jsonl"
# Older ones go.
_MOST = 1000


class History:
    """The lines so far; a batch that is decided anew replaces what was decided for it before."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lines: list[dict[str, Any]] | None = None

    def add(self, batch: int, decided: Mapping[str, Any]) -> None:
        """One more line."""
        if self._lines is None:
            self._lines = self._read()
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        earlier = [line for line in self._lines if line["batch"] < batch]
        self._lines = [*earlier, {"batch": batch, "time": time, **decided}][-_MOST:]
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in self._lines)
        self._folder.write(_FILE, text.encode())

    def _read(self) -> list[dict[str, Any]]:
        data = self._folder.read(_FILE)
        try:
            return [] if data is None else [json.loads(line) for line in data.decode().splitlines()]
        except ValueError:
            # Nothing is decided by it, so what cannot be read is no reason to stop.
            return []
