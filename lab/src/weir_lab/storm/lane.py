"""One query in a process of its own, fed in real time; it may be killed on the way."""

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
from weir_lab.storm.record import read_lines, ticks_taken
from weir_lab.storm.schedule import Schedule
from weir_lab.storm.setup import PROGRESS, STOP, Setup

# Starting Java, and the slowest batch that is waited for.
_PATIENCE = 180.0
_LOOK = 0.1


@dataclass
class Process:
    """The job of a lane; whatever happens, nothing of it is left behind."""

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
        """Start it; a second start goes on where a killed one was."""
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "weir_lab.storm.job", str(self.folder)]
            self._running = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """SIGKILL to the driver and its Java; Spark's workers end by themselves when Java is gone."""
        if self._running is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()
        self._running = None

    def stop(self, patience: float = 30.0) -> None:
        """Let the batch that runs come to its end."""
        assert self._running is not None
        (self.folder / STOP).touch()
        try:
            self._running.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()

    def check(self) -> None:
        """Raise what ended it."""
        if self._running is not None and self._running.poll() not in (None, 0):
            raise RuntimeError(f"the query has ended:\n{(self.folder / 'log').read_text()[-3000:]}")

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What it has told so far."""
        return read_lines(self.folder / PROGRESS)

    def has_taken(self, ticks: int, patience: float = _PATIENCE) -> bool:
        """Wait until it has taken in so many ticks; False if that lasts too long."""
        until = time.monotonic() + patience
        while max(ticks_taken(self.lines, self.counts, self.interval), default=0) < ticks:
            self.check()
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK)
        return True

    def expect(self, ticks: int) -> None:
        """Wait until it has taken in so many ticks, which it has to."""
        if not self.has_taken(ticks):
            raise RuntimeError(f"a batch takes too long:\n{(self.folder / 'log').read_text()[-3000:]}")


@dataclass(frozen=True, slots=True)
class Run:
    """What a lane told, and how many ticks it had been given at the end."""

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
