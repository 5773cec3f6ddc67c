"""Kills at random on a cluster of two Workers: the driver, its Java or Python alone, executors, workers."""

from __future__ import annotations

import random
import selectors
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from weir_lab.attack.job import STARTED, job, wait_for_end
from weir_lab.attack.target import Target
from weir_lab.attack.trial import End, Trial
from weir_lab.bench.cluster import Cluster, cluster
from weir_lab.bench.processes import Process, kill, list_python_workers, list_session

NAME = "kills at random"
# Kills of a worker are over soon, those of an executor or a driver cost a start of Java.
_VICTIMS = (*["worker"] * 6, *["executor"] * 2, "driver", "java", "python")
_SURVIVED = ("worker", "executor")
_SECONDS_PER_KILL = 3
_PATIENCE = 300
# At the end all that is left is joined, one second of rows a batch.
_PATIENCE_PER_SECOND = 5
_LAST_STARTS = 3


def attack(folder: Path, kills: int, seed: int) -> Iterator[Trial]:
    """Kill so often, let the job end, and compare its output with the join of all rows at once."""
    with cluster(folder) as workers:
        campaign = _Campaign(folder, workers, random.Random(seed))
        error = campaign.run(kills)
    compared = campaign.target.compare()
    end: End = "stuck" if error else "exact" if compared.is_exact else "not exact"
    for victim in campaign.victims:
        yield Trial(NAME, victim, end, error or compared.describe())
    if campaign.own_ends:
        said = f"the job ended {campaign.own_ends} times though its driver was not killed"
        yield Trial(NAME, "none", "exact" if compared.is_exact else "not exact", said)


class _Campaign:
    """Starts the job again and again, and kills."""

    def __init__(self, folder: Path, workers: Cluster, rng: random.Random) -> None:
        self._folder, self._cluster, self._random = folder, workers, rng
        self.target = Target(folder / "query")
        self.victims: list[str] = []
        self.own_ends = 0

    def run(self, kills: int) -> str:
        """All kills, then a start that is left alone; returns why the job does not end, if so."""
        self.target.feed(2 * _SECONDS_PER_KILL)
        in_vain = 0
        while len(self.victims) < kills and in_vain < _LAST_STARTS:
            before = len(self.victims)
            with job(self._folder / "log", self._settings(once=False)) as process:
                self._torment(process, kills)
            in_vain = in_vain + 1 if len(self.victims) == before else 0
        for _ in range(_LAST_STARTS):
            with job(self._folder / "log", self._settings(once=True)) as process:
                if wait_for_end(process, _PATIENCE + _PATIENCE_PER_SECOND * self.target.seconds) == 0:
                    return ""
        return f"the job does not end: {(self._folder / 'log').read_text()[-2000:]}"

    def _settings(self, once: bool) -> dict[str, object]:
        folders = [str(self.target.folder)]
        target = {"folders": folders, "kind": self.target.kind, "format": self.target.format}
        return {**target, "master": self._cluster.master, "once": once}

    def _torment(self, process: subprocess.Popen[str], kills: int) -> None:
        """Kill until the job is gone: its workers and executors as often as it survives that."""
        if self._random.random() < 0.8:
            _wait_for_start(process)
        else:
            time.sleep(self._random.uniform(0.0, 8.0))
        while process.poll() is None and len(self.victims) < kills:
            self.target.feed(_SECONDS_PER_KILL)
            time.sleep(self._random.uniform(0.0, 2.0))
            victim = self._random.choice(_VICTIMS)
            if process.poll() is None and self._strike(process, victim):
                self.victims.append(victim)
                if victim not in _SURVIVED:
                    return
        if process.poll() is not None:
            self.own_ends += 1

    def _strike(self, process: subprocess.Popen[str], victim: str) -> bool:
        """Kill one, or for the driver all; False if there is none such now."""
        family = list_session(process.pid)
        executors, workers = self._cluster.executors(), list_python_workers(self._cluster.processes())
        groups: dict[str, list[Process]] = {
            "driver": sorted(family, key=lambda process: process.pid),
            "java": [process for process in family if process.command.split(" ")[0].endswith("java")],
            "python": [member for member in family if member.pid == process.pid],
            "executor": [self._random.choice(executors)] if executors else [],
            "worker": [self._random.choice(workers)] if workers else [],
        }
        # All of them, so no any(), which would stop at the first.
        return sum(kill(process) for process in groups[victim]) > 0


def _wait_for_start(process: subprocess.Popen[str]) -> None:
    """Wait until the job says that it has started, for its end, or for as long as a start may take."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + _PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            if selector.select(timeout=0.2) and process.stdout.readline().strip() in (STARTED, ""):
                return
