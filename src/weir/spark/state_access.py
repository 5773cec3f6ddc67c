"""Open the checkpoint of a query that does not run, to look at it or to repair it.

A checkpoint on a local disk needs no Spark session for that, and others get one.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from weir.errors import QueryError
from weir.spark.checkpoint import Checkpoint
from weir.spark.checkpoint_lock import in_use
from weir.spark.filesystem import Folder, LocalFolder, open_folder
from weir.spark.power_cut import open_output
from weir.spark.script import session
from weir.spark.state_repair import StoredState
from weir.spark.state_report import describe_state
from weir.spark.worker_files import local_path

_Opener = Callable[[str], Folder]
_PATIENCE_SECONDS = 3.0  # a driver that is stopping holds its lock for a moment
_RETRY_SECONDS = 0.1


def look_at_state(location: str, settings: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what a checkpoint holds, as headings and texts."""
    with _open(location, settings) as state:
        lock = _find_lock(state.location)
        return list(describe_state(state, None if lock is None else _is_locked(lock)))


@contextmanager
def open_for_repair(location: str, settings: Mapping[str, str]) -> Iterator[StoredState]:
    """Open a checkpoint that no driver uses, and lock it where that is possible."""
    with _open(location, settings) as state:
        lock = _find_lock(state.location)
        with nullcontext() if lock is None else _lock(lock, state.checkpoint.folder.uri):
            yield state


@contextmanager
def _open(location: str, settings: Mapping[str, str]) -> Iterator[StoredState]:
    path = local_path(location)
    if path is not None and not Path(path).is_dir():
        raise QueryError(f"there is no folder {path}; give the checkpointLocation of a query")
    if path is not None and _is_local(Checkpoint(_open_local(f"{path}/weir"))):
        yield _read_state(_open_local, path)
        return
    with session(settings) as spark:
        yield _read_state(lambda uri: open_folder(spark, uri), location)


def _open_local(uri: str) -> Folder:
    path = os.path.abspath(local_path(uri) or "")
    return LocalFolder(f"file:{path}", path)


def _is_local(checkpoint: Checkpoint) -> bool:
    """True if the results are on a local disk too, or nowhere that is known."""
    job = checkpoint.read_job()
    path = None if job is None or job.target is None else job.target.path
    return path is None or local_path(path) is not None


def _read_state(open_uri: _Opener, location: str) -> StoredState:
    folder, checkpoint = open_uri(location), Checkpoint(open_uri(f"{location.rstrip('/')}/weir"))
    if checkpoint.read_job() is None:
        raise QueryError(
            f"{folder.uri} is not the checkpoint of a join, as it has no weir/jobs; give the "
            "checkpointLocation of a query"
        )
    return StoredState(folder, checkpoint, open_output(folder, checkpoint, open_uri))


def _find_lock(location: Folder) -> Path | None:
    path = local_path(location.uri)
    return None if path is None else Path(os.path.realpath(path)) / "weir/lock"


def _is_locked(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


@contextmanager
def _lock(path: Path, uri: str) -> Iterator[None]:
    """Lock a checkpoint as a driver does; refuse one that a driver has locked."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while _is_locked(path):
        if time.monotonic() > deadline:
            raise in_use(uri, str(path))
        time.sleep(_RETRY_SECONDS)
    with path.open("a+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise in_use(uri, str(path)) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on host {socket.gethostname()}")
        file.flush()
        yield
