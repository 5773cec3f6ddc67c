"""Corruption: a bit flipped, a file cut short, deleted or swapped, of every kind in checkpoint and output.

A start must refuse it in a sentence, or go on to the exact results. Published results are not attacked, nor
older entries of a log of them: they are the user's, and nothing of the query rests on them.
"""

from __future__ import annotations

import random
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.options import Durability
from weir.runtime.batch_events import listen
from weir.spark.result_log import LOG_FOLDER
from weir.spark.state_access import open_for_repair
from weir_lab.attack.target import Comparison, Format, Kind, Target, is_clear, run_safely
from weir_lab.attack.trial import Trial

NAME = "corruption"
_DONE, _ALL = 3, 5


@dataclass(frozen=True, slots=True)
class _State:
    """Which query is attacked, and where it is: between two batches, or before a step of the next one."""

    step: str | None
    format: Format = "parquet"
    kind: Kind = "mjoin"
    durability: Durability = "power"


_STATES = (
    _State(None),
    _State("publish"),
    _State("sync_results", "json"),
    _State("spark_commit"),
    _State("sync_results", "logged"),
    _State("publish", kind="tree", durability="process"),
    _State("spark_commit", "json", "changing plans", "process"),
)
_UNREADABLE = Comparison(0, 0, 0, 0)


class _StopError(Exception):
    """Here the query is stopped."""


def attack(spark: Any, folder: Path, corruptions: int, seed: int) -> Iterator[Trial]:
    """Damage so many files, the same share of every kind, and each in a fresh copy."""
    rng = random.Random(seed)
    targets = [_interrupt(spark, folder / f"state-{number}", state) for number, state in enumerate(_STATES)]
    for number in range(corruptions):
        target = targets[number % len(targets)]
        _restore(target)
        kind, damaged, how = _damage(target, rng)
        what = f"{kind} {how} ({damaged.relative_to(target.folder)}, {target.kind}, {target.format})"
        error = run_safely(lambda: target.run(spark))  # noqa: B023 - called here
        yield _judge(spark, target, what, error)


def _judge(spark: Any, target: Target, what: str, error: Exception | None) -> Trial:
    """Exact, or refused with nothing wrong to be seen; where the advice is a repair, that must help."""
    compared = _compare(target)
    if error is None:
        return Trial(NAME, what, "exact" if compared.is_exact else "not exact", compared.describe())
    said = f"{type(error).__name__}: {error}"
    if compared.twice or compared.wrong:
        return Trial(NAME, what, "not exact", said)
    if not is_clear(error):
        return Trial(NAME, what, "unclear", said)
    if "weir state repair" in str(error):
        unrepaired = run_safely(lambda: _repair(target)) or run_safely(lambda: target.run(spark))
        compared = _compare(target)
        if unrepaired is None:
            repaired = f"{said}; repaired: {compared.describe()}"
            return Trial(NAME, what, "repaired" if compared.is_exact else "not exact", repaired)
        is_hopeless = is_clear(unrepaired) and "no earlier batch is whole" in str(unrepaired)
        if not is_hopeless:
            return Trial(NAME, what, "stuck", f"{said}; after the repair: {unrepaired}")
    return Trial(NAME, what, "refused", said)


def _compare(target: Target) -> Comparison:
    """Compare what a reader sees; one who goes by a damaged log of results fails, and sees nothing wrong."""
    try:
        return target.compare()
    except (OSError, ValueError):
        return _UNREADABLE


def _repair(target: Target) -> None:
    """Do what `weir state repair` does."""
    with open_for_repair(str(target.checkpoint), {}) as stored:
        planned = stored.plan_repair()
        if planned is not None:
            stored.apply(planned)


def _interrupt(spark: Any, folder: Path, state: _State) -> Target:
    """A query with some batches done and some to come, and a copy of its files."""
    target, step = Target(folder, state.kind, state.format, state.durability), state.step
    target.feed(_DONE)
    target.run(spark)
    target.feed(_ALL - _DONE)
    if step is not None:

        def fail(reached: str, batch: int) -> None:
            if (reached, batch) == (step, _DONE):
                raise _StopError

        stop = listen(fail)
        run_safely(lambda: target.run(spark))
        stop()
    for name in ("checkpoint", "out"):
        shutil.copytree(target.folder / name, target.folder / f"kept {name}")
    return target


def _restore(target: Target) -> None:
    for name in ("checkpoint", "out"):
        shutil.rmtree(target.folder / name)
        shutil.copytree(target.folder / f"kept {name}", target.folder / name)


def _damage(target: Target, rng: random.Random) -> tuple[str, Path, str]:
    """Damage one file; return its kind, its path, and what was done."""
    kinds = _list_kinds(target)
    kind = rng.choice(sorted(kinds))
    path = rng.choice(kinds[kind])
    how = rng.choice(sorted(_DAMAGES))
    _DAMAGES[how](path, [other for other in kinds[kind] if other != path], rng)
    return kind, path, how


def _list_kinds(target: Target) -> dict[str, list[Path]]:
    """The files by kind: their folder, with numbers and ids left out, and whether they are hidden."""
    kinds = defaultdict[str, list[Path]](list)
    for below in (target.checkpoint, target.out):
        for path in sorted(below.rglob("*")):
            if path.is_file() and not _is_settled(path):
                folder = str(path.parent.relative_to(target.folder))
                name = re.sub(r"[0-9a-f]{6,}|[0-9]+", "N", path.name)
                kinds[f"{folder}/{name}"].append(path)
    return kinds


def _is_settled(path: Path) -> bool:
    """True for what only readers of the results rest on."""
    if path.parent.name != LOG_FOLDER:
        return path.name.startswith("part-")
    newest = max(int(entry.stem) for entry in path.parent.glob("[0-9]*"))
    return path.name.strip(".").split(".")[0] != str(newest)


def _flip(path: Path, others: Sequence[Path], rng: random.Random) -> None:
    data = bytearray(path.read_bytes() or b"\0")
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _truncate(path: Path, others: Sequence[Path], rng: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data) or 1)])


def _delete(path: Path, others: Sequence[Path], rng: random.Random) -> None:
    path.unlink()


def _swap(path: Path, others: Sequence[Path], rng: random.Random) -> None:
    """Put another file of the same kind in its place, or, where there is none, some other bytes."""
    if not others:
        path.write_bytes(rng.randbytes(path.stat().st_size))
        return
    other = rng.choice(others)
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


_DAMAGES: dict[str, Callable[[Path, Sequence[Path], random.Random], None]] = {
    "flipped": _flip,
    "cut short": _truncate,
    "deleted": _delete,
    "swapped": _swap,
}
