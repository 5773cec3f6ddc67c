"""The most memory that processes hold while something runs, above what they held before."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from threading import Event, Thread
from types import TracebackType

import pyarrow as pa

from weir_lab.bench.processes import list_descendants, list_processes, list_python_workers

GIGABYTE = 1e9
_SECONDS_BETWEEN = 0.02


class PeakMemory:
    """Looks at this process and its descendants again and again while it is entered.

    `above_idle` has bytes beyond those at entry: of this process, of the Python worker that holds the most,
    of Java, and of all processes together. Mapped files count, and what processes share counts in each.
    """

    def __init__(self) -> None:
        self.idle: Mapping[str, int] = {}
        self._peak: dict[str, int] = {}
        self._done = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        # What allocators keep for later would hide as much of the peak.
        pa.default_memory_pool().release_unused()
        ctypes.CDLL(None).malloc_trim(0)
        self.idle = _look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    @property
    def above_idle(self) -> Mapping[str, int]:
        """The peaks so far."""
        return {name: max(0, peak - self.idle[name]) for name, peak in self._peak.items()}

    def _watch(self) -> None:
        while not self._done.wait(_SECONDS_BETWEEN):
            for name, held in _look().items():
                self._peak[name] = max(held, self._peak.get(name, 0))


def _look() -> dict[str, int]:
    family = list_descendants(os.getpid())
    java = [process for process in family if process.command.split(" ")[0].endswith("java")]
    this = [process for process in list_processes() if process.pid == os.getpid()]
    return {
        "process": sum(process.memory() for process in this),
        "worker": max((process.memory() for process in list_python_workers(family)), default=0),
        "Java": sum(process.memory() for process in java),
        "all": sum(process.memory() for process in [*this, *family]),
    }
