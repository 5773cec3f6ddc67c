"""Processes as /proc shows them: what belongs to a session, and how much memory it holds."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Process:
    """One running process."""

    pid: int
    parent: int
    session: int
    command: str

    @property
    def is_spark_daemon(self) -> bool:
        """True for Spark's Python daemon and for the workers it forks, which keep its command line."""
        return "pyspark.daemon" in self.command

    def memory(self) -> int:
        """Bytes in memory; 0 if it has ended."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """CPU time of the process and of the children it has waited for; 0 if it has ended."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def list_processes() -> list[Process]:
    """All that run now."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [process for pid in pids if (process := _read(pid)) is not None]


def list_descendants(pid: int) -> list[Process]:
    """The descendants of a process."""
    children: dict[int, list[Process]] = {}
    for process in list_processes():
        children.setdefault(process.parent, []).append(process)
    descendants, waiting = [], [pid]
    while waiting:
        fresh = children.get(waiting.pop(), [])
        descendants += fresh
        waiting += [process.pid for process in fresh]
    return descendants


def list_session(leader: int) -> list[Process]:
    """The processes of a session, however their groups and parents have changed."""
    return [process for process in list_processes() if process.session == leader]


def list_python_workers(among: list[Process]) -> list[Process]:
    """Spark's Python workers, without the daemon that forks them."""
    daemons = {process.pid for process in among if process.is_spark_daemon}
    return [process for process in among if process.is_spark_daemon and process.parent in daemons]


def kill(process: Process) -> bool:
    """SIGKILL, unless the process has ended or its number now belongs to another session."""
    now = _read(process.pid)
    if now is None or now.session != process.session:
        return False
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def end_session(leader: subprocess.Popen[Any]) -> None:
    """Kill what is in a session until nothing is left of it."""
    while left := list_session(leader.pid):
        for process in left:
            kill(process)
        leader.poll()
        time.sleep(0.05)
    leader.wait()


def _read(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    # The name stands in brackets and may hold anything, so count from its end.
    state, parent, _, session, *_ = stat.rpartition(")")[2].split()
    return None if state == "Z" else Process(pid, int(parent), int(session), command)
