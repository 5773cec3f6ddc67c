"""`weir-lab bench attack`: run the attacks, and hold how they ended against what they must show."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from weir.errors import QueryError
from weir_lab.attack import (
    clocks,
    corruption,
    full_disk,
    loop_disk_cuts,
    power_cuts,
    races,
    random_kills,
    soak,
    step_kills,
)
from weir_lab.attack.target import MASTER
from weir_lab.attack.trial import Report, Trial
from weir_lab.bench.session import session

_SOAK_MINUTES, _QUICK_SOAK_MINUTES = 45.0, 5.0


@dataclass(frozen=True, slots=True)
class _Setting:
    """What an attack is given: Spark, a folder, how many trials, and a seed."""

    spark: Any
    folder: Path
    trials: int
    seed: int
    is_quick: bool


@dataclass(frozen=True, slots=True)
class _Attack:
    """What an attack must show, and the number of its trials at full size and in a quick run.

    `runs_jobs`: its queries run in processes of their own, so that it needs no Spark here.
    """

    wanted: str
    run: Callable[[_Setting], Iterator[Trial]]
    trials: int
    quick: int
    needs_root: bool = False
    runs_jobs: bool = False


_ATTACKS: Mapping[str, _Attack] = {
    "corruption": _Attack(
        "refused in a sentence, repaired, or exact",
        lambda given: corruption.attack(given.spark, given.folder, given.trials, given.seed),
        trials=500,
        quick=16,
    ),
    "power-cuts": _Attack(
        "every restart goes on, exact",
        lambda given: power_cuts.attack(given.spark, given.folder, given.trials, given.seed),
        trials=100,
        quick=9,
    ),
    "disk-cuts": _Attack(
        "every restart goes on, exact",
        lambda given: loop_disk_cuts.attack(given.spark, given.folder, given.trials, given.seed),
        trials=100,
        quick=4,
        needs_root=True,
    ),
    "races": _Attack(
        "exact, the loser says why",
        lambda given: races.attack(given.spark, given.folder, given.trials, given.seed),
        trials=50,
        quick=4,
    ),
    "full-disk": _Attack(
        "a clear message, exact after room is made",
        lambda given: full_disk.attack(given.spark, given.folder, given.trials, given.seed),
        trials=60,
        quick=4,
        needs_root=True,
    ),
    "clocks": _Attack(
        "exact, nothing called late",
        lambda given: clocks.attack(given.spark, given.folder, given.trials, given.seed),
        trials=24,
        quick=4,
    ),
    "step-kills": _Attack(
        "exact",
        lambda given: step_kills.attack(given.folder, given.is_quick),
        trials=126,
        quick=18,
        runs_jobs=True,
    ),
    "random-kills": _Attack(
        "exact",
        lambda given: random_kills.attack(given.folder, given.trials, given.seed),
        trials=300,
        quick=6,
        runs_jobs=True,
    ),
    "soak": _Attack(
        "exact, memory and files flat, 45 minutes with a kill every five",
        lambda given: soak.attack(
            given.folder, _QUICK_SOAK_MINUTES if given.is_quick else _SOAK_MINUTES, given.seed
        ),
        trials=14,
        quick=14,
        runs_jobs=True,
    ),
}


def run(quick: bool, only: str | None, seed: int) -> list[Report]:
    """Run all attacks, or one."""
    if only is not None and only not in _ATTACKS:
        raise QueryError(f"--only is one of {', '.join(_ATTACKS)}; got '{only}'")
    names = list(_ATTACKS) if only is None else [only]
    spark: Any = None
    if not all(_ATTACKS[name].runs_jobs for name in names):
        # Every attack makes queries fail, so what Java says of that is left out.
        settings = {"spark.driver.memory": "2g", "spark.log.level": "OFF", "spark.master": MASTER}
        spark = session("weir-lab bench attack", **settings)
    try:
        return [_run_one(spark, name, quick, seed) for name in names]
    finally:
        if spark is not None:
            spark.stop()


def _run_one(spark: Any, name: str, quick: bool, seed: int) -> Report:
    attack = _ATTACKS[name]
    enough = attack.quick if quick else attack.trials
    started, trials, refusal = perf_counter(), list[Trial](), ""
    if attack.needs_root and (os.geteuid() != 0 or shutil.which("mkfs.ext4") is None):
        refusal = "not run: it needs root, mount and mkfs.ext4"
    else:
        with tempfile.TemporaryDirectory(prefix=f"weir-{name}-", ignore_cleanup_errors=True) as folder:
            try:
                for trial in attack.run(_Setting(spark, Path(folder), enough, seed, quick)):
                    trials.append(trial)
                    trial.tell(len(trials))
            except (OSError, RuntimeError) as error:  # the attacks that follow can still be run
                refusal = f"broken off: {type(error).__name__}: {error}"
    seconds = perf_counter() - started
    return Report(name, attack.wanted, tuple(trials), enough, seconds, seed, _find_commit(), refusal)


def _find_commit() -> str:
    """The commit of the code that is attacked; "" if it is not in a git repository."""
    asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(asked, capture_output=True, text=True)
    return found.stdout.strip()


def list_bad(reports: Sequence[Report]) -> list[Trial]:
    """All trials that ended as they must not."""
    return [trial for report in reports for trial in report.trials if not trial.is_good]
