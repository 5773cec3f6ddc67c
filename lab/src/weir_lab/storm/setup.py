"""The settings of a lane, which its process reads from a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

Lane = Literal["adaptive", "random drop", "Spark's own", "sizing"]
ADAPTIVE: Final = "adaptive"
DROPPING: Final = "random drop"
OWN: Final = "Spark's own"
SIZING: Final = "sizing"
# Of the trigger interval; the rest is for what a busy machine does besides.
CPU = 0.8
CORES = 2
# Files of a lane: a line per batch, and the word to stop.
PROGRESS, STOP = "progress.jsonl", "stop"


@dataclass(frozen=True, slots=True)
class Setup:
    """One lane: the trigger interval in seconds, and what it may use.

    `memory` are the bytes of state it may keep, from tick `halved` on half of them; `drop` is the share of
    every stream that never reaches the join; `warm` batches decide nothing.
    """

    lane: Lane
    interval: float
    memory: int | None = None
    halved: int | None = None
    drop: float = 0.0
    warm: int = 3

    def allowed(self, tick: int) -> int | None:
        """The bytes of state that it may keep from a tick on; None if there is no limit."""
        if self.memory is None or self.halved is None or tick < self.halved:
            return self.memory
        return self.memory // 2

    def write(self, folder: Path) -> None:
        """Write the settings to the lane's folder."""
        (folder / "setup.json").write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(folder: Path) -> Setup:
        """Read what `write` wrote."""
        return Setup(**json.loads((folder / "setup.json").read_text()))
