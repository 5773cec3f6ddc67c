"""Races: two drivers, each a process with its own Java, run the same query at the same time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weir.spark import checkpoint_lock
from weir.spark.errors import TakenOverError
from weir_lab.attack.rival import DONE, MANAGER, PAUSED, UNLOCKED, Rival, rival
from weir_lab.attack.target import FORMATS, KINDS, Target, is_clear, run_safely
from weir_lab.attack.trial import Trial

NAME = "races"
_SECONDS = 3
_MOMENTS = 45
_PATIENCE_SECONDS = 1.0
# With a lock the second is refused; without one it takes over from a paused driver, or both run at once.
_WAYS = ("locked", "paused", "paused", "at once")


def attack(spark: Any, folder: Path, races: int, seed: int) -> Iterator[Trial]:
    """Let two drivers race so often, in every way and at drawn moments."""
    rng = random.Random(seed)
    usual, checkpoint_lock._PATIENCE_SECONDS = checkpoint_lock._PATIENCE_SECONDS, _PATIENCE_SECONDS
    try:
        with rival(folder / "rival.log") as other:
            for number in range(races):
                kind, format = KINDS[number % len(KINDS)], FORMATS[number // len(KINDS) % len(FORMATS)]
                target = Target(folder / f"race-{number}", kind, format)
                target.feed(_SECONDS)
                yield _race(spark, target, other, _WAYS[number % len(_WAYS)], rng)
    finally:
        checkpoint_lock._PATIENCE_SECONDS = usual


def _race(spark: Any, target: Target, other: Rival, way: str, rng: random.Random) -> Trial:
    pause = rng.randrange(1, _MOMENTS) if way != "at once" else 0
    other.run(target, pause, locked=way == "locked")
    first = other.answer() if pause else ""
    error = _run_beside(spark, target, locked=way == "locked")
    (target.folder / "go").touch()
    was_paused = first.startswith(PAUSED)
    ended = other.answer() if was_paused or not pause else first
    # Whatever the loser has written late: whoever is started next goes on.
    target.feed(1)
    last = run_safely(lambda: target.run(spark))
    said = f"this driver: {_describe(error)}; the other: {ended}; then: {_describe(last)}"
    what = f"{target.kind} into {target.format}, {way}, the other {first or 'beside it'}"
    if not _says_why(way, was_paused, error, ended):
        return Trial(NAME, what, "unclear", said)
    if last is not None:
        return Trial(NAME, what, "stuck", said)
    return Trial(NAME, what, "exact" if target.compare().is_exact else "not exact", said)


def _run_beside(spark: Any, target: Target, locked: bool) -> Exception | None:
    if not locked:
        spark.conf.set(MANAGER, UNLOCKED)
    try:
        return run_safely(lambda: target.run(spark))
    finally:
        spark.conf.unset(MANAGER)


def _says_why(way: str, was_paused: bool, error: Exception | None, ended: str) -> bool:
    """True if each driver has ended well or said why not, and the right one has ended well."""
    if way == "locked" and was_paused:
        return error is not None and is_clear(error) and " is in use" in str(error) and ended == DONE
    if way == "paused" and was_paused:
        return error is None and ended.startswith(f"clear {TakenOverError.__name__}")
    return (error is None or is_clear(error)) and (ended == DONE or ended.startswith("clear "))


def _describe(error: Exception | None) -> str:
    return DONE if error is None else f"{type(error).__name__}: {error}"
