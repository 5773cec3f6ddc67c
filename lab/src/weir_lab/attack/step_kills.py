"""Kills at every step of a batch: drivers with a query at each place die by SIGKILL and are started again."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

from weir_lab.attack.job import PLACES, job, wait_for_end
from weir_lab.attack.target import FORMATS, KINDS, Format, Kind, Target
from weir_lab.attack.trial import End, Trial
from weir_lab.bench.cluster import cluster

NAME = "kills at every step"
# With nothing before it, and with state, commits and decisions before it.
_BATCHES = (0, 2)
_SECONDS = 5
_PATIENCE_SECONDS = 300.0


def attack(folder: Path, quick: bool) -> Iterator[Trial]:
    """Kill at each step queries of every kind on one machine, and of one kind on a cluster of two Workers."""
    for kind in KINDS[: 1 if quick else None]:
        for format in FORMATS[: 1 if quick else 2]:
            yield from _kill(folder / f"{kind}-{format}", kind, format, "local[2]")
    if not quick:
        (folder / "cluster").mkdir()
        with cluster(folder / "cluster") as workers:
            yield from _kill(folder / "cluster" / "queries", "mjoin", "parquet", workers.master)


def _kill(folder: Path, kind: Kind, format: Format, master: str) -> Iterator[Trial]:
    targets = [Target(folder / place, kind, format) for place in PLACES]
    for target in targets:
        target.feed(_SECONDS)
    asked = {
        "master": master,
        "kind": kind,
        "format": format,
        "once": True,
        "folders": [str(target.folder) for target in targets],
    }
    where = "" if master.startswith("local") else ", on a cluster"
    errors = []
    for batch in (*_BATCHES, None):
        with job(folder / "log", {**asked, "kill": batch}) as process:
            code = wait_for_end(process, _PATIENCE_SECONDS)
        wanted = 0 if batch is None else -signal.SIGKILL
        if code != wanted:
            errors.append(f"ended with {code} instead of {wanted}: {(folder / 'log').read_text()[-1500:]}")
            break
    for target in targets:
        compared = target.compare()
        end: End = "stuck" if errors else "exact" if compared.is_exact else "not exact"
        for batch in _BATCHES:
            # Which query died at which place is theirs to decide; all places were taken.
            what = f"{kind} into {format}, batch {batch}, one of the queries at {len(PLACES)} places{where}"
            yield Trial(NAME, what, end, errors[0] if errors else compared.describe())
