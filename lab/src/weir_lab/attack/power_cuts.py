"""Power cuts: a query's files become one of the states that its disk may legally show, and it goes on.

Files count as synced only where the driver has synced them, Spark's own files like all others.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from weir.options import Durability
from weir_lab.attack.disk_states import File, draw_state, read_tree, sync_folder, write_tree
from weir_lab.attack.moments import FOLDER_SYNCED, SYNCED, watch
from weir_lab.attack.target import FORMATS, KINDS, Target, run_safely
from weir_lab.attack.trial import Trial

NAME = "power cuts"
_BELOW = ("checkpoint", "out")
_CUTS_PER_QUERY = 10
_SECONDS_PER_CUT = 2
# A start and its two batches have about so many moments.
_MOMENTS = 45
_LONGEST_BUILD = 0.4


class PowerCutError(Exception):
    """Here the power is cut."""


def attack(
    spark: Any, folder: Path, cuts: int, seed: int, durability: Durability = "power"
) -> Iterator[Trial]:
    """Cut the power so often, at drawn moments of queries of every kind."""
    rng = random.Random(seed)
    for number, begun in enumerate(range(0, cuts, _CUTS_PER_QUERY)):
        kind, format = KINDS[number % len(KINDS)], FORMATS[number // len(KINDS) % len(FORMATS)]
        target = Target(folder / f"cut-{number}", kind, format, durability)
        yield from _attack_one(spark, target, min(_CUTS_PER_QUERY, cuts - begun), rng)


def _attack_one(spark: Any, target: Target, cuts: int, rng: random.Random) -> Iterator[Trial]:
    disk, cut_at = _Disk(target.folder), list[str]()
    error: Exception | None = None
    for _ in range(cuts):
        target.feed(_SECONDS_PER_CUT)
        disk.cut_after(rng.randrange(_MOMENTS), rng.uniform(0.0, _LONGEST_BUILD))
        with watch(disk.notice):
            error = run_safely(lambda: target.run(spark))
        cut_at.append(f"{target.kind} into {target.format}, cut {disk.where}")
        if error is not None and not disk.is_cut:
            break
        disk.replug(rng)
    else:
        error = run_safely(lambda: target.run(spark))
    yield from judge_cuts(NAME, target, cut_at, error)


def judge_cuts(
    attack: str, target: Target, cut_at: Sequence[str], error: Exception | None
) -> Iterator[Trial]:
    """Judge all cuts of a query by how its last run ended and by what its readers see then."""
    compared = target.compare()
    for what in cut_at:
        if error is not None:
            yield Trial(attack, what, "stuck", f"{type(error).__name__}: {error}")
        else:
            yield Trial(attack, what, "exact" if compared.is_exact else "not exact", compared.describe())


class _Disk:
    """Knows what is synced of a query's files, and cuts the power."""

    def __init__(self, root: Path) -> None:
        self._root, self._guard = root, threading.Lock()
        self._synced: dict[str, File] = {}
        self._now: dict[str, File] | None = None  # what was written when the power was cut
        self._left, self._into_build = 0, 0.0
        self.where = ""

    @property
    def is_cut(self) -> bool:
        """True after the cut, until the disk is plugged in again."""
        return self._now is not None

    def cut_after(self, moments: int, into_build: float) -> None:
        """Cut the power so many moments later; if that is where tasks are started, while those run."""
        self._left, self._into_build, self.where = moments, into_build, "after its end"

    def notice(self, moment: str) -> None:
        """Keep account of what is synced; cut the power when it is time, after which nothing goes on."""
        with self._guard:
            if self._now is None:
                self._sync(moment)
                self._left -= 1
                if self._left == 0 and moment.startswith("build"):
                    threading.Timer(self._into_build, self._cut_in_build, (moment,)).start()
                elif self._left <= 0:
                    self._cut(moment)
            if self._now is not None:
                raise PowerCutError(moment)

    def replug(self, rng: random.Random) -> None:
        """Let the files be one of the states that the disk may show; those are on the disk now."""
        now = read_tree(self._root, _BELOW) if self._now is None else self._now
        write_tree(self._root, _BELOW, draw_state(self._synced, now, rng))
        self._synced, self._now = read_tree(self._root, _BELOW), None

    def _sync(self, moment: str) -> None:
        if moment == SYNCED:
            self._synced = read_tree(self._root, _BELOW)
        elif moment.startswith(FOLDER_SYNCED):
            folder = os.path.relpath(moment.removeprefix(FOLDER_SYNCED), self._root)
            self._synced = sync_folder(self._synced, read_tree(self._root, _BELOW), folder)

    def _cut_in_build(self, moment: str) -> None:
        with self._guard:
            if self._now is None:
                self._cut(f"during {moment}")

    def _cut(self, moment: str) -> None:
        self._now, self.where = read_tree(self._root, _BELOW), f"at: {moment}"
