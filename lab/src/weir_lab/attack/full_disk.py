"""Full disks: the room ends at every write of the driver, and at drawn fill levels for all processes.

A small file system in memory (tmpfs, which needs root) is filled until little room is left. The query must
say so in a sentence, and give the exact results once there is room.
"""

from __future__ import annotations

import errno
import os
import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weir.spark import filesystem
from weir.spark.errors import DiskFullError
from weir_lab.attack.target import FORMATS, KINDS, Target, run_safely
from weir_lab.attack.trial import End, Trial

NAME = "full disk"
_SECONDS = 3
_SIZE = 8 << 20
_PAGE = 4096


def attack(spark: Any, folder: Path, levels: int, seed: int) -> Iterator[Trial]:
    """Let every write of the driver fail once, then fill a disk to so many levels."""
    yield from _fail_each_write(spark, folder)
    yield from _fill(spark, folder, levels, random.Random(seed))


def _fail_each_write(spark: Any, folder: Path) -> Iterator[Trial]:
    number = 0
    while True:
        number += 1
        target = _make_target(folder / f"write-{number}", number)
        with _failing_write(number) as failed:
            error = run_safely(lambda: target.run(spark))  # noqa: B023 - called here
        if not failed:
            return
        yield _judge(spark, target, error, f"write {number} of the driver, {_name_kind(failed[0], target)}")


def _fill(spark: Any, folder: Path, levels: int, rng: random.Random) -> Iterator[Trial]:
    mount = folder / "small"
    mount.mkdir()
    kinds = len(KINDS) * len(FORMATS)
    needs = [_measure_need(spark, folder / f"whole-{number}", number) for number in range(min(kinds, levels))]
    for level in range(levels):
        with _small_disk(mount):
            target = _make_target(mount / "query", level)
            room = rng.randrange(needs[level % kinds] // _PAGE) * _PAGE
            ballast = mount / "ballast"
            ballast.write_bytes(bytes(max(0, _free(mount) - room)))
            error = run_safely(lambda: target.run(spark))  # noqa: B023 - called here
            ballast.unlink()
            yield _judge(spark, target, error, f"{room >> 10} KB of room")


def _make_target(folder: Path, number: int) -> Target:
    target = Target(folder, KINDS[number % len(KINDS)], FORMATS[number // len(KINDS) % len(FORMATS)])
    target.feed(_SECONDS)
    return target


def _measure_need(spark: Any, folder: Path, number: int) -> int:
    """How much a whole run leaves on a disk, by pages."""
    target = _make_target(folder, number)
    target.run(spark)
    files = [path for below in (target.checkpoint, target.out) for path in below.rglob("*") if path.is_file()]
    return sum(-(-path.stat().st_size // _PAGE) * _PAGE for path in files)


def _judge(spark: Any, target: Target, error: Exception | None, what: str) -> Trial:
    """A clear message, nothing wrong to be seen, and exact after room is made."""
    what = f"{target.kind} into {target.format}, {what}"
    end: End = "exact"
    if error is not None:
        end = "refused" if isinstance(error, DiskFullError) and "\n" not in str(error) else "unclear"
        what += f", {_name_kind(str(error), target)}"
        again = run_safely(lambda: target.run(spark))
        if again is not None:
            return Trial(NAME, what, "stuck", f"{error}; then: {again}")
    compared = target.compare()
    said = compared.describe() if error is None else f"{type(error).__name__}: {error}"
    return Trial(NAME, what, end if compared.is_exact else "not exact", said)


def _name_kind(text: str, target: Target) -> str:
    """The kind of file that a message names."""
    found = re.search(rf"{re.escape(str(target.folder))}/(\S+?)(?:[,;:]|\s|$)", text)
    return re.sub(r"[0-9a-f]{6,}|[0-9]+", "N", found[1]) if found else "no file named"


@contextmanager
def _failing_write(number: int) -> Iterator[list[str]]:
    """Let the driver's write of this number find no room; gives back which file that was."""
    write, left, failed = filesystem._write_file, [number], list[str]()

    def write_if_room(path: Path, data: bytes, *how: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            failed.append(str(path))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, data, *how)

    setattr(filesystem, "_write_file", write_if_room)  # noqa: B010 - it takes any arguments
    try:
        yield failed
    finally:
        filesystem._write_file = write


@contextmanager
def _small_disk(mount: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(mount)], check=True)
    try:
        yield
    finally:
        # Lazily: Java lets go of a lock's file a moment after its query has ended.
        subprocess.run(["umount", "--lazy", str(mount)], check=True)


def _free(mount: Path) -> int:
    found = os.statvfs(mount)
    return found.f_bavail * found.f_frsize
