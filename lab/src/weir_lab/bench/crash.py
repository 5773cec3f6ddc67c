"""`weir-lab bench crash`: real processes, killed at random moments; at the end no row is lost or there twice.

The job runs on a cluster of two Workers. What is killed: the whole driver, its Java alone, its Python alone,
an executor, or one Python worker in the middle of its work.
"""

from __future__ import annotations

import os
import random
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import weir
from weir_lab.bench.cluster import Cluster, cluster
from weir_lab.bench.crash_job import ON, SELECT, STARTED, WITHIN
from weir_lab.bench.feed import STREAMS, Feed
from weir_lab.bench.processes import Process, end_session, kill, list_python_workers, list_session

KILLS, QUICK_KILLS = 200, 6
FEED = Feed(rows_per_second=40, keys=20)
# Kills of a worker are over soon, those of an executor or a driver cost a start of Java.
_VICTIMS = (*["worker"] * 6, *["executor"] * 2, "driver", "java", "python")
_SURVIVED = ("worker", "executor")
_SECONDS_PER_KILL = 3
_PATIENCE = 300
# At the end all that is left is joined, one second of rows a batch.
_PATIENCE_PER_SECOND = 5


@dataclass
class Outcome:
    """What happened: the seed, kills by victim, ends that no kill of ours explains, and the rows compared."""

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    own_failures: int = 0
    results: int = 0
    lost: int = 0
    duplicate: int = 0
    wrong: int = 0

    @property
    def is_exact(self) -> bool:
        """True if the output holds every result once and nothing else, and there were results."""
        return bool(self.results) and not (self.lost or self.duplicate or self.wrong)

    def describe(self) -> str:
        """The outcome in a few words."""
        kinds = ", ".join(f"{count} {victim}" for victim, count in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} kills ({kinds}) over {self.starts} starts, seed {self.seed}: "
            f"{self.results:,} results, {self.lost:,} lost, {self.duplicate:,} twice, {self.wrong:,} wrong; "
            f"the job ended {self.own_failures} times without its driver being killed"
        )


def run(kills: int = KILLS, seed: int | None = None) -> Outcome:
    """Kill so often, let the job end, and compare its output with the join of all rows at once."""
    outcome = Outcome(random.SystemRandom().randrange(1 << 32) if seed is None else seed)
    print(f"seed {outcome.seed}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="weir-crash-") as folder:
        with cluster(Path(folder)) as workers:
            seconds = _Campaign(Path(folder), workers, outcome).run(kills)
        compare(outcome, join_at_once(seconds), read_output(Path(folder) / "out"))
    return outcome


class _Campaign:
    """Starts the job again and again, and kills."""

    def __init__(self, folder: Path, workers: Cluster, outcome: Outcome) -> None:
        self._folder, self._cluster, self._outcome = folder, workers, outcome
        self._random = random.Random(outcome.seed)
        self._seconds = 0

    def run(self, kills: int) -> int:
        """All kills, then one start that is left alone; how many seconds of rows there were."""
        self._feed(2 * _SECONDS_PER_KILL)
        while self._outcome.kills.total() < kills:
            with self._job() as job:
                self._torment(job, kills)
        for _ in range(3):
            with self._job("--once") as job:
                if job.wait(_PATIENCE + _PATIENCE_PER_SECOND * self._seconds) == 0:
                    return self._seconds
                self._outcome.own_failures += 1
        raise RuntimeError(f"the job does not end (seed {self._outcome.seed}):\n{self._log()[-4000:]}")

    def _torment(self, job: subprocess.Popen[str], kills: int) -> None:
        """Kill until the job is gone: its workers and executors as often as it survives that."""
        if self._random.random() < 0.8:
            wait_for(job, STARTED)
        else:
            time.sleep(self._random.uniform(0.0, 8.0))
        while job.poll() is None and self._outcome.kills.total() < kills:
            self._feed(_SECONDS_PER_KILL)
            time.sleep(self._random.uniform(0.0, 2.0))
            victim = self._random.choice(_VICTIMS)
            if job.poll() is None and self._strike(job, victim):
                self._outcome.kills[victim] += 1
                print(f"kill {self._outcome.kills.total()}: {victim}", file=sys.stderr, flush=True)
                if victim not in _SURVIVED:
                    return
        if job.poll() is not None:
            self._outcome.own_failures += 1

    def _strike(self, job: subprocess.Popen[str], victim: str) -> bool:
        """Kill one, or for the driver all; False if there is none such now."""
        family = list_session(job.pid)
        executors, workers = self._cluster.executors(), list_python_workers(self._cluster.processes())
        groups: dict[str, list[Process]] = {
            "driver": sorted(family, key=lambda process: process.pid),
            "java": [process for process in family if process.command.split(" ")[0].endswith("java")],
            "python": [process for process in family if process.pid == job.pid],
            "executor": [self._random.choice(executors)] if executors else [],
            "worker": [self._random.choice(workers)] if workers else [],
        }
        # All of them, so no any(), which would stop at the first.
        return sum(kill(process) for process in groups[victim]) > 0

    @contextmanager
    def _job(self, *options: str) -> Iterator[subprocess.Popen[str]]:
        """The job in a session of its own, of which nothing is left at the end."""
        job_module = "weir_lab.bench.crash_job"
        command = [sys.executable, "-m", job_module, str(self._folder), self._cluster.master, *options]
        self._outcome.starts += 1
        with (self._folder / "log").open("a") as log:
            job = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        try:
            yield job
        finally:
            end_session(job)
            if job.stdout is not None:
                job.stdout.close()

    def _feed(self, seconds: int) -> None:
        FEED.write(self._folder / "in", range(self._seconds, self._seconds + seconds))
        self._seconds += seconds

    def _log(self) -> str:
        return (self._folder / "log").read_text()


def wait_for(job: subprocess.Popen[str], word: str) -> None:
    """Wait for a line of the job, its end, or for as long as a start may take."""
    assert job.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(job.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + _PATIENCE
        while job.poll() is None and time.monotonic() < deadline:
            if selector.select(timeout=0.2) and job.stdout.readline().strip() in (word, ""):
                return


def join_at_once(seconds: int) -> pa.Table:
    """The same join over all rows at once, in this process."""
    tables = {
        stream: pa.concat_tables(FEED.second(stream, number) for number in range(seconds))
        for stream in STREAMS
    }
    joined = weir.join(streams=tables, on=ON, within=WITHIN, select=SELECT).to_arrow()
    assert isinstance(joined, pa.Table)
    return joined


def read_output(folder: Path) -> pa.Table:
    """What a reader of the output sees: every file that is not hidden."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith(("_", ".")))
    return pa.concat_tables([pq.read_table(folder / name) for name in names])


def compare(outcome: Outcome, expected: pa.Table, written: pa.Table) -> None:
    """Rows as multisets: how many are missing, there too often, or not results at all."""
    wanted, seen = _counted(expected), _counted(written)
    outcome.results = wanted.total()
    outcome.lost = (wanted - seen).total()
    extra = seen - wanted
    outcome.wrong = sum(count for row, count in extra.items() if row not in wanted)
    outcome.duplicate = extra.total() - outcome.wrong


def _counted(rows: pa.Table) -> Counter[Sequence[object]]:
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))
