"""A soak with everything on: a budget, plans that change, late rows, and a kill every few minutes.

Rows come as time goes by. At the end the results must be exact, and memory and files must not have grown.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median

from weir_lab.attack.job import job, wait_for_end
from weir_lab.attack.target import Target
from weir_lab.attack.trial import End, Trial
from weir_lab.bench.feed import Feed
from weir_lab.bench.processes import kill, list_session

NAME = "soak"
_ROWS = Feed(rows_per_second=100, keys=1000, late_every=20)
_KILLS = 9
_SAMPLE_SECONDS = 2.0
# After a start Java grows into its heap; what is compared are the ends of the lives between two kills.
_SETTLED = 0.5
_GROWTH = 1.15
_PATIENCE = 600


@dataclass(frozen=True, slots=True)
class _Sample:
    """What a running job takes: memory of its processes, files and bytes of weir's state and of offsets."""

    life: int
    megabytes: float
    files: int
    checkpoint_kb: float


def attack(folder: Path, minutes: float, seed: int) -> Iterator[Trial]:
    """Run for so long in lives of equal length, each but the last ended by a kill."""
    target = Target(folder / "query", kind="changing plans", rows=_ROWS)
    rng, samples = random.Random(seed), list[_Sample]()
    feeding = threading.Event()
    feeder = threading.Thread(target=_feed, args=(target, feeding), daemon=True)
    feeder.start()
    settings = {
        "folders": [str(target.folder)],
        "kind": target.kind,
        "format": target.format,
        "master": "local[2]",
    }
    ended = ""
    for life in range(_KILLS + 1):
        with job(folder / "log", {**settings, "once": False}) as process:
            over = time.monotonic() + minutes * 60 / (_KILLS + 1)
            while time.monotonic() < over and process.poll() is None:
                time.sleep(_SAMPLE_SECONDS)
                samples.append(_take_sample(target, process.pid, life))
            if process.poll() is not None:
                ended = f"the job ended by itself: {(folder / 'log').read_text()[-1000:]}"
                break
            if life < _KILLS:
                family = list_session(process.pid)
                for victim in family if rng.random() < 0.5 else [rng.choice(family)]:
                    kill(victim)
        said = f"{samples[-1]}, {target.seconds} seconds of rows"
        yield Trial(NAME, f"life {life + 1} of {_KILLS + 1}", "stuck" if ended else "exact", said)
    feeding.set()
    feeder.join()
    with job(folder / "log", {**settings, "once": True}) as process:
        if wait_for_end(process, _PATIENCE) != 0:
            ended = f"the job does not end: {(folder / 'log').read_text()[-1000:]}"
    compared = target.compare()
    end: End = "stuck" if ended else "exact" if compared.is_exact else "not exact"
    yield Trial(NAME, "results", end, f"{compared.describe()} {ended}")
    for what in ("megabytes", "files", "checkpoint_kb"):
        yield _judge_growth(what, samples)


def _feed(target: Target, stop: threading.Event) -> None:
    target.feed(1)
    while not stop.wait(1.0):
        target.feed(1)


def _take_sample(target: Target, leader: int, life: int) -> _Sample:
    memory = sum(process.memory() for process in list_session(leader))
    sizes = []
    # Spark's logs of files that were read grow by design.
    for parent, _, names in chain(
        os.walk(target.checkpoint / "weir"), os.walk(target.checkpoint / "offsets")
    ):
        for name in names:
            try:
                sizes.append(os.stat(os.path.join(parent, name)).st_size)
            except FileNotFoundError:
                continue
    return _Sample(life, round(memory / 2**20), len(sizes), round(sum(sizes) / 1024))


def _judge_growth(what: str, samples: Sequence[_Sample]) -> Trial:
    """Compare the last third of the lives with the first full ones, each by the second half of a life."""
    lives = max(sample.life for sample in samples) + 1
    levels = []
    for life in range(lives):
        taken = [getattr(sample, what) for sample in samples if sample.life == life]
        levels.append(median(taken[round(_SETTLED * len(taken)) :] or taken))
    early, last = median(levels[1:4] or levels), median(levels[-3:])
    grown = last / early
    end: End = "exact" if grown <= _GROWTH else "not exact"
    return Trial(
        NAME, f"{what} at the end over those at the beginning", end, f"{early:g} → {last:g}, {grown:.2f}"
    )
