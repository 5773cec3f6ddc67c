"""A lane: one query in its own process, fed in real time, perhaps killed on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir_lab.storm.feeder import Feeder
from weir_lab.storm.record import count_ticks_taken, read_lines
from weir_lab.storm.schedule import Schedule
from weir_lab.storm.setup import PROGRESS, STOP, Setup

# Starting Java, and the slowest batch that is waited for.
_PATIENCE = 180.0
_LOOK = 0.1


@dataclass
class Process:
    """The process of a lane; leaving the context ends it and its children."""

    folder: Path
    counts: Sequence[int]
    interval: float
    _running: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __enter__(self) -> Process:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the job; after a kill it resumes from its checkpoint."""
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "weir_lab.storm.job", str(self.folder)]
            self._running = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """Send SIGKILL to the driver and its Java; Spark's workers end by themselves then."""
        if self._running is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()
        self._running = None

    def stop(self, patience: float = 30.0) -> None:
        """Stop after the running batch."""
        assert self._running is not None
        (self.folder / STOP).touch()
        try:
            self._running.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()

    def check(self) -> None:
        """Raise an error with the log if the process has ended."""
        if self._running is not None and self._running.poll() not in (None, 0):
            raise RuntimeError(f"the query has ended:\n{(self.folder / 'log').read_text()[-3000:]}")

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Return the progress lines so far."""
        return read_lines(self.folder / PROGRESS)

    def has_taken(self, ticks: int, patience: float = _PATIENCE) -> bool:
        """Wait until the query has read so many ticks; False on a timeout."""
        until = time.monotonic() + patience
        while max(count_ticks_taken(self.lines, self.counts, self.interval), default=0) < ticks:
            self.check()
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK)
        return True

    def expect(self, ticks: int) -> None:
        """Wait until the query has read so many ticks; raise an error on a timeout."""
        if not self.has_taken(ticks):
            raise RuntimeError(f"a batch takes too long:\n{(self.folder / 'log').read_text()[-3000:]}")


@dataclass(frozen=True, slots=True)
class Run:
    """The progress lines of a lane, and how many ticks it had been fed at the end."""

    lines: list[dict[str, Any]]
    given: int
    out: Path
    checkpoint: Path
    killed_at: int | None = None


def play(
    setup: Setup,
    schedule: Schedule,
    source: Path,
    counts: Sequence[int],
    folder: Path,
    kill_at: int | None = None,
    patience: float = 60.0,
    tell: Callable[[str], None] = lambda _: None,
) -> Run:
    """Feed a query through a schedule; at tick `kill_at` its driver is killed and started again."""
    folder.mkdir(parents=True)
    setup.write(folder)
    feeder = Feeder(source, folder / "in", setup.interval)
    given, killed_at = 0, None
    with Process(folder, counts, setup.interval) as process:
        for tick in range(schedule.warm):
            feeder.bring(tick)
            given = tick + 1
            process.expect(given)

        def goes_on(tick: int) -> bool:
            nonlocal given, killed_at
            process.check()
            if tick == kill_at:
                killed_at = len(process.lines)
                process.kill()
                process.start()
            tell(f"{setup.lane}: tick {tick + 1} of {schedule.ticks}, {schedule.phase(tick).name}")
            given = tick + 1
            return True

        feeder.run(range(schedule.warm, schedule.ticks), goes_on)
        process.has_taken(given, patience)
        process.stop()
        return Run(process.lines, given, folder / "out", folder / "checkpoint", killed_at)
