"""Run a job in a process of its own, and take note of its marks, its memory and its CPU time."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir_lab.bench.processes import end_session, list_session

_SAMPLE_SECONDS = 0.2
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Mark:
    """So many results were out, so many seconds after the process started."""

    seconds: float
    results: int


@dataclass(frozen=True, slots=True)
class JobRun:
    """What a job did; memory is the most that its processes held together, what they share counted twice."""

    marks: tuple[Mark, ...]
    memory_mb: float
    cpu_seconds: float

    @property
    def results(self) -> int:
        """All results."""
        return self.marks[-1].results

    @property
    def seconds(self) -> float:
        """From the start of the process to the last result."""
        return self.marks[-1].seconds

    def seconds_after(self, results: int) -> float:
        """The seconds from the moment when so many results were out to the last result.

        >>> JobRun((Mark(1.0, 0), Mark(3.0, 10), Mark(4.0, 20)), 0.0, 0.0).seconds_after(5)
        2.0
        """
        return self.seconds - find_moment(self.marks, results)


def find_moment(marks: Sequence[Mark], results: int) -> float:
    """When so many results were out; between two marks they are taken to come evenly.

    >>> find_moment([Mark(1.0, 0), Mark(3.0, 10), Mark(4.0, 20)], 10)
    3.0
    """
    before = marks[0]
    for mark in marks:
        if mark.results >= results:
            share = (results - before.results) / max(1, mark.results - before.results)
            return before.seconds + share * (mark.seconds - before.seconds)
        before = mark
    raise ValueError(f"{results} results were never out; there were {before.results}")


def run_job(
    command: Sequence[str], job: Mapping[str, Any], folder: Path, environment: Mapping[str, str]
) -> JobRun:
    """Run a command on the job's description, watch its processes, and end those that it leaves."""
    folder.mkdir(parents=True)
    marks = folder / "marks.json"
    description = folder / "job.json"
    description.write_text(json.dumps({**job, "marks": str(marks)}))
    with (folder / "log").open("w") as log:
        started = time.time()
        process = subprocess.Popen(
            [*command, str(description)],
            env=dict(environment),
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            memory, cpu = _watch(process)
        finally:
            end_session(process)
    if process.returncode or not marks.exists():
        tail = "\n".join((folder / "log").read_text().splitlines()[-20:])
        raise RuntimeError(f"the job of {job['engine']} failed with code {process.returncode}:\n{tail}")
    moments = tuple(Mark(moment - started, results) for moment, results in json.loads(marks.read_text()))
    return JobRun(moments, memory / _MEGABYTE, cpu)


def _watch(process: subprocess.Popen[Any]) -> tuple[int, float]:
    """The most memory and CPU time of all the job's processes, while they run."""
    memory, cpu = 0, 0.0
    while process.poll() is None:
        running = list_session(process.pid)
        memory = max(memory, sum(one.memory() for one in running))
        cpu = max(cpu, sum(one.cpu_seconds() for one in running))
        time.sleep(_SAMPLE_SECONDS)
    return memory, cpu
