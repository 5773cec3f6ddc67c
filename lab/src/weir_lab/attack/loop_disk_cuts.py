"""Power cuts of a real disk: ext4 on a loop device, which stops at once and loses what was not written to it.

Needs root and a kernel with both. The rows lie on another disk.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weir.options import Durability
from weir_lab.attack.loop_disk import LoopDisk, loop_disk
from weir_lab.attack.moments import watch
from weir_lab.attack.power_cuts import PowerCutError, judge_cuts
from weir_lab.attack.target import FORMATS, KINDS, Target, run_safely
from weir_lab.attack.trial import Trial

NAME = "power cuts of a real disk"
_CUTS_PER_QUERY = 10
_SECONDS_PER_CUT = 2
_LONGEST_RUN = 6.0


def attack(
    spark: Any, folder: Path, cuts: int, seed: int, durability: Durability = "power"
) -> Iterator[Trial]:
    """Cut the power so often, at any moment of queries of every kind."""
    rng = random.Random(seed)
    with loop_disk(folder) as disk:
        for number, begun in enumerate(range(0, cuts, _CUTS_PER_QUERY)):
            kind, format = KINDS[number % len(KINDS)], FORMATS[number // len(KINDS) % len(FORMATS)]
            target = Target(disk.mount / f"query-{number}", kind, format, durability)
            rows = folder / f"rows-{number}"
            rows.mkdir()
            target.folder.mkdir()
            (target.folder / "in").symlink_to(rows)
            os.sync()
            yield from _attack_one(spark, target, disk, min(_CUTS_PER_QUERY, cuts - begun), rng)


def _attack_one(spark: Any, target: Target, disk: LoopDisk, cuts: int, rng: random.Random) -> Iterator[Trial]:
    cut_at = list[str]()
    error: Exception | None = None
    for _ in range(cuts):
        target.feed(_SECONDS_PER_CUT)
        cut = _Cut(disk, rng.uniform(0.0, _LONGEST_RUN))
        with watch(cut.notice):
            error = run_safely(lambda: target.run(spark))
        is_cut = cut.finish()
        cut_at.append(f"{target.kind} into {target.format}, cut {cut.where}")
        if error is not None and not is_cut:
            break
        disk.replug()
    else:
        error = run_safely(lambda: target.run(spark))
    yield from judge_cuts(NAME, target, cut_at, error)


class _Cut:
    """Cuts the power some seconds after the first moment of a run, or at its end."""

    def __init__(self, disk: LoopDisk, seconds: float) -> None:
        self._disk, self._seconds, self._guard = disk, seconds, threading.Lock()
        self._timer: threading.Timer | None = None
        self._is_cut, self._last = False, "before it began"
        self.where = "after its end"

    def notice(self, moment: str) -> None:
        """Note where the run is; after the cut nothing goes on."""
        with self._guard:
            if self._is_cut:
                raise PowerCutError(moment)
            self._last = moment
            if self._timer is None:
                self._timer = threading.Timer(self._seconds, self._cut)
                self._timer.start()

    def finish(self) -> bool:
        """Cut the power now if that has not been done; False if the run ended by itself before."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        with self._guard:
            was_cut = self._is_cut
            if not was_cut:
                self._disk.cut()
            return was_cut

    def _cut(self) -> None:
        # A sync that is under way must not keep the cut waiting, so not under the guard.
        self.where = f"after: {self._last}"
        self._disk.cut()
        self._is_cut = True
