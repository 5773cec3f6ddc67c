"""What a disk may show after a power cut, given what it showed at the last sync and what is written since.

POSIX promises nothing of what is not synced: of each file alone the old, the new, nothing or a part may be
there, and each name alone may have appeared or vanished. A file whose bytes were synced and that was renamed
since is whole under one of its names.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class File:
    """A file as the disk knows it: which one it is, and its bytes."""

    inode: int
    data: bytes


Tree = Mapping[str, File]


def read_tree(root: Path, below: Iterable[str]) -> dict[str, File]:
    """Read all files of some folders; what vanishes meanwhile is not there."""
    found: dict[str, File] = {}
    for folder in below:
        for parent, _, names in os.walk(root / folder):
            for name in names:
                path = Path(parent) / name
                try:
                    found[str(path.relative_to(root))] = File(path.stat().st_ino, path.read_bytes())
                except FileNotFoundError:
                    continue
    return found


def write_tree(root: Path, below: Iterable[str], tree: Mapping[str, bytes]) -> None:
    """Let folders hold these files and no others."""
    for folder in below:
        shutil.rmtree(root / folder, ignore_errors=True)
    for name, data in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def sync_folder(synced: Tree, now: Tree, folder: str) -> dict[str, File]:
    """Return what is synced once the names in one folder are: files appear there as whole as they were."""
    known = {file.inode: file for file in synced.values()}
    kept = {name: file for name, file in synced.items() if os.path.dirname(name) != folder}
    here = {
        name: known.get(file.inode, file) for name, file in now.items() if os.path.dirname(name) == folder
    }
    return kept | here


def draw_state(synced: Tree, now: Tree, rng: random.Random) -> dict[str, bytes]:
    """Draw one of the states that the disk may show.

    >>> old, new = {"a": File(1, b"kept")}, {"b": File(1, b"kept"), "c": File(2, b"fresh")}
    >>> sorted({tuple(draw_state(old, new, random.Random(seed)).get("b", b"")) for seed in range(9)})[0]
    ()
    """
    whole = {(file.inode, file.data) for file in synced.values()}
    state: dict[str, bytes] = {}
    for name in sorted(synced.keys() | now.keys()):
        before, after = synced.get(name), now.get(name)
        if before is not None and after is not None and before.data == after.data:
            state[name] = before.data
            continue
        choices: list[bytes | None] = [None if before is None else before.data]
        if after is None:
            choices.append(None)
        elif (after.inode, after.data) in whole:
            choices.append(after.data)
        else:
            choices += [after.data, b"", after.data[: rng.randrange(len(after.data) + 1)]]
        chosen = rng.choice(choices)
        if chosen is not None:
            state[name] = chosen
    _keep_renamed(synced, now, state)
    return state


def _keep_renamed(synced: Tree, now: Tree, state: dict[str, bytes]) -> None:
    """A synced file that was renamed is under its old name if it is not under the new one."""
    names = {(file.inode, file.data): name for name, file in now.items()}
    for name, file in synced.items():
        renamed = names.get((file.inode, file.data))
        if renamed is None or renamed == name:
            continue
        if state.get(renamed) == file.data:
            state.pop(name, None)
        else:
            state[name] = file.data
