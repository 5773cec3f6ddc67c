"""The moments of a batch at which an attack can strike: its steps, and around each rename and sync."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from weir.runtime.batch_events import listen
from weir.spark import durability
from weir.spark.filesystem import LocalFolder

Moment = Callable[[str], None]
SYNCED, FOLDER_SYNCED = "synced", "folder synced "


@contextmanager
def watch(notice: Moment) -> Iterator[None]:
    """Call `notice` in the driver at every moment of every batch, with its name."""
    move, sync, sync_folder = LocalFolder.move, durability._Disk.sync, durability._sync_folder

    def watched_move(folder: LocalFolder, source: str, target: str) -> None:
        notice(f"before {target} is there")
        move(folder, source, target)
        notice(f"after {target} is there")

    def watched_sync(disk: Any) -> None:
        notice("before a sync")
        sync(disk)
        notice(SYNCED)

    def watched_sync_folder(path: str) -> None:
        notice("before a sync of a folder")
        sync_folder(path)
        notice(f"{FOLDER_SYNCED}{path}")

    stop = listen(lambda step, batch: notice(f"{step} of batch {batch}"))
    # Nothing else shows what happens between two steps.
    places: list[tuple[Any, str, Any]] = [
        (LocalFolder, "move", watched_move),
        (durability._Disk, "sync", watched_sync),
        (durability, "_sync_folder", watched_sync_folder),
    ]
    usual = [getattr(owner, name) for owner, name, _ in places]
    for owner, name, watched in places:
        setattr(owner, name, watched)
    try:
        yield
    finally:
        stop()
        for (owner, name, _), function in zip(places, usual, strict=True):
            setattr(owner, name, function)
