"""Epochs: every start from a checkpoint takes the next one, and a driver of an older epoch stops.

    new driver    takes an epoch, then reads decisions
    old driver    writes a decision, then looks for a newer epoch

So either the new driver sees the decision and obeys it, or the old one sees the epoch and stops. It looks
again before it publishes and before it commits. It may be paused right after that, but what it does then is
harmless: its results have the names and rows of the new driver's, and the names of its manifests and slices
carry its epoch, of which readers take the highest.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from weir.errors import QueryError
from weir.spark.errors import TakenOverError, damaged_state
from weir.spark.filesystem import Folder
from weir.spark.job_description import VERSION
from weir.spark.result_names import is_id
from weir.spark.sealed_json import seal, unseal
from weir.spark.state_names import parse_batch_file, parse_job

FOLDER = "epochs"
_NAME = re.compile(r"(\d{4,9})\.json")


@dataclass(frozen=True)
class Epoch:
    """The epoch of one start; `folder` is weir's folder of the checkpoint, `id` that of the query."""

    folder: Folder
    id: str
    number: int

    def check(self) -> None:
        """Stop if another driver has taken a later epoch."""
        epochs = list_epochs(self.folder)
        newest = max(epochs, default=0)
        if newest > self.number:
            holder = _describe_holder(self.folder, newest)
            raise TakenOverError(
                f"another driver ({holder}) has taken over the checkpoint {self.folder.uri} and goes on with "
                "its query, so this one stops; let one driver at a time run from a checkpoint, or give each "
                "a checkpointLocation of its own"
            )
        if self.number not in epochs:
            path = f"{self.folder.uri}/{name_epoch(self.number)}"
            raise damaged_state(f"{path} is missing, the epoch of this driver, as if its state was deleted")


def take_epoch(folder: Folder, query_id: str) -> Epoch:
    """Take the next epoch of a query, or refuse if that of another query runs there."""
    while True:
        newest = _find_newest(folder)
        if read_id(folder) not in (None, query_id):
            holder = _describe_holder(folder, newest)
            raise QueryError(
                f"another driver ({holder}) has just started another query from the checkpoint {folder.uri}; "
                "start again, or with a checkpointLocation of its own"
            )
        body = {
            "kind": "epoch",
            "id": query_id,
            "epoch": newest + 1,
            "version": VERSION,
            **_describe_driver(),
        }
        if folder.create(name_epoch(newest + 1), seal(body)):
            return Epoch(folder, query_id, newest + 1)


def read_id(folder: Folder) -> str | None:
    """Return the id of the query that took the newest epoch; None if there is none, or it is damaged."""
    newest = max(list_epochs(folder), default=0)
    query_id = _read_body(folder, newest).get("id")
    return query_id if isinstance(query_id, str) and is_id(query_id) else None


def list_epochs(folder: Folder) -> list[int]:
    """Return the epochs that were taken, as far as they are kept."""
    names = map(_NAME.fullmatch, folder.names(FOLDER))
    return sorted(int(name[1]) for name in names if name is not None)


def _find_newest(folder: Folder) -> int:
    """Return the highest epoch that any name carries: the file of an epoch may be lost before others."""
    jobs = (epoch for epoch in map(parse_job, folder.names("jobs")) if epoch is not None)
    names = (name for below in ("decisions", "manifests") for name in folder.names(below))
    files = (file.epoch for file in map(parse_batch_file, names) if file is not None)
    return max([0, *list_epochs(folder), *jobs, *files])


def describe_newest(folder: Folder) -> str:
    """Say which driver took the newest epoch."""
    newest = max(list_epochs(folder), default=0)
    return f"epoch {newest}, {_describe_holder(folder, newest)}"


def name_epoch(number: int) -> str:
    """Return the name of an epoch's file."""
    return f"{FOLDER}/{number:04d}.json"


def _describe_driver() -> dict[str, str | int]:
    time = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
    return {"host": socket.gethostname(), "pid": os.getpid(), "time": time}


def _read_body(folder: Folder, number: int) -> dict[str, Any]:
    """What an epoch's file says; nothing if it is being written, or damaged: its number is what counts."""
    return unseal(folder.read(name_epoch(number)) or b"") or {}


def _describe_holder(folder: Folder, number: int) -> str:
    body = _read_body(folder, number)
    if not {"host", "pid", "time"} <= body.keys():
        return f"epoch {number}"
    return f"process {body['pid']} on host {body['host']}, since {body['time']}"
