"""Cut the power of the disk under a running join, again and again; at the end no row is lost or there twice.

By hand, as root: `python -m weir_lab.bench.power_cut CUTS [--unsynced] [--seed N]`. The rows lie on another
disk. With `--unsynced` the join runs with durability="process", to see what that loses.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weir_lab.bench.crash import FEED, Outcome, compare, join_at_once, read_output, wait_for
from weir_lab.bench.crash_job import STARTED
from weir_lab.bench.loop_disk import LoopDisk, loop_disk
from weir_lab.bench.processes import end_session

_SECONDS_PER_CUT = 6
_PATIENCE = 120


def run(cuts: int, synced: bool = True, seed: int | None = None) -> Outcome:
    """Cut the power so often, let the job end, and compare its output with the join of all rows at once."""
    outcome = Outcome(random.SystemRandom().randrange(1 << 32) if seed is None else seed)
    with tempfile.TemporaryDirectory(prefix="weir-power-cut-") as name, loop_disk(Path(name)) as disk:
        campaign = _Campaign(Path(name), disk, outcome, synced)
        seconds = campaign.run(cuts)
        compare(outcome, join_at_once(seconds), read_output(disk.mount / "out"))
    return outcome


class _Campaign:
    """Starts the job again and again, and cuts the power."""

    def __init__(self, folder: Path, disk: LoopDisk, outcome: Outcome, synced: bool) -> None:
        self._folder, self._disk, self._outcome, self._synced = folder, disk, outcome, synced
        self._random, self._seconds = random.Random(outcome.seed), 0
        (disk.mount / "in").symlink_to(folder / "in")
        os.sync()

    def run(self, cuts: int) -> int:
        """All cuts, then one start that is left alone; how many seconds of rows there were."""
        for number in range(cuts):
            self._feed()
            with self._job() as job:
                wait_for(job, STARTED)
                self._wait_for_batches(job, self._random.randrange(_SECONDS_PER_CUT))
                time.sleep(self._random.uniform(0.0, 0.5))
                has_ended = job.poll() is not None
                self._disk.cut()
            self._disk.replug()
            if has_ended:
                raise RuntimeError(f"the job ended before cut {number + 1}:\n{self._log()[-3000:]}")
            self._outcome.kills["power cut"] += 1
            print(f"cut {number + 1}: {_describe(self._disk.mount)}", file=sys.stderr, flush=True)
        with self._job("--once") as job:
            if job.wait(_PATIENCE + 5 * self._seconds):
                raise RuntimeError(f"the job does not go on:\n{self._log()[-3000:]}")
        return self._seconds

    @contextmanager
    def _job(self, *options: str) -> Iterator[subprocess.Popen[str]]:
        module = [sys.executable, "-m", "weir_lab.bench.crash_job", str(self._disk.mount), "local[2]"]
        self._outcome.starts += 1
        with (self._folder / "log").open("w") as log:
            job = subprocess.Popen(
                [*module, *options, *([] if self._synced else ["--unsynced"])],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        try:
            yield job
        finally:
            end_session(job)
            if job.stdout is not None:
                job.stdout.close()

    def _wait_for_batches(self, job: subprocess.Popen[str], count: int) -> None:
        """Wait until so many more batches are committed; one takes in a second of rows."""
        commits = self._disk.mount / "checkpoint/commits"
        wanted, deadline = self._seconds - _SECONDS_PER_CUT + count, time.monotonic() + _PATIENCE
        while job.poll() is None and time.monotonic() < deadline:
            if (
                commits.is_dir()
                and max((int(p.name) for p in commits.glob("[0-9]*")), default=-1) >= wanted - 1
            ):
                return
            time.sleep(0.01)

    def _feed(self) -> None:
        FEED.write(self._folder / "in", range(self._seconds, self._seconds + _SECONDS_PER_CUT))
        self._seconds += _SECONDS_PER_CUT

    def _log(self) -> str:
        return (self._folder / "log").read_text()


def _describe(disk: Path) -> str:
    """How many files of each folder are there, and how many of them are empty."""
    files, empty = Counter[str](), Counter[str]()
    for path in disk.rglob("*"):
        if path.is_file() and not path.name.startswith(".") and not path.is_relative_to(disk / "in"):
            where = str(path.parent.relative_to(disk))
            files[where] += 1
            empty[where] += path.stat().st_size == 0
    return ", ".join(f"{where} {count} ({empty[where]} empty)" for where, count in sorted(files.items()))


if __name__ == "__main__":
    given = sys.argv[1:]
    chosen = int(given[given.index("--seed") + 1]) if "--seed" in given else None
    ended = run(int(given[0]), "--unsynced" not in given, chosen)
    print(ended.describe())
    raise SystemExit(0 if ended.is_exact else 1)
