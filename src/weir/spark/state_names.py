"""Names of the files in weir's folder of a checkpoint; no name is ever given to another content.

manifests/<batch>-<epoch>.json, decisions/<batch>-<epoch>.json    readers take the highest epoch
jobs/<epoch>.json                                                 the same
slices/<batch>-<partition>-<number>-<epoch>-<hex>.arrow           count if a manifest names them
stats/<batch>-<epoch>-<partition>-<stage>.json                    of tasks; deleted after the batch

Workers import this module.
"""

from __future__ import annotations

import re
import uuid
from typing import Literal, NamedTuple

BatchFileKind = Literal["decision", "manifest"]
_BATCH_FILE = re.compile(r"(\d{1,18})-(\d{4,9})\.json")
_HIDDEN = re.compile(r"\.\d{1,18}-(\d{4,9})\.json\.[0-9a-f]{8}")
_SLICE = re.compile(r"(\d{9,18})-\d{4,9}-\d{2,9}-(\d{4,9})-[0-9a-f]{12}\.arrow")


class BatchAndEpoch(NamedTuple):
    """Which batch wrote a file, and in which epoch."""

    batch: int
    epoch: int


def name_batch_file(kind: BatchFileKind, written: BatchAndEpoch) -> str:
    """Name a decision or manifest.

    >>> name_batch_file("manifest", BatchAndEpoch(7, 2))
    'manifests/7-0002.json'
    """
    return f"{kind}s/{written.batch}-{written.epoch:04d}.json"


def parse_batch_file(name: str) -> BatchAndEpoch | None:
    """Read the name of a decision or manifest, without its folder; None if it is no such name."""
    return _parse(_BATCH_FILE.fullmatch(name))


def parse_hidden(name: str) -> int | None:
    """Return the epoch in which a decision or manifest was being written under a hidden name."""
    match = _HIDDEN.fullmatch(name)
    return None if match is None else int(match[1])


def name_slice(written: BatchAndEpoch, partition: int, number: int) -> str:
    """Make a new name for a slice file; `number` tells the files of a partition apart."""
    batch, epoch = written
    return f"{batch:09d}-{partition:04d}-{number:02d}-{epoch:04d}-{uuid.uuid4().hex[:12]}.arrow"


def parse_slice(name: str) -> BatchAndEpoch | None:
    """Read the name of a slice file; None if it is no such name.

    >>> parse_slice("000000007-0001-00-0002-0123456789ab.arrow")
    BatchAndEpoch(batch=7, epoch=2)
    >>> parse_slice("../../precious")
    """
    return _parse(_SLICE.fullmatch(name))


def name_job(epoch: int) -> str:
    """Name the job that an epoch recorded."""
    return f"jobs/{epoch:04d}.json"


def parse_job(name: str) -> int | None:
    """Read the name of a job, without its folder."""
    match = re.fullmatch(r"(\d{4,9})\.json", name)
    return None if match is None else int(match[1])


def name_counts(written: BatchAndEpoch, partition: int, stage: int) -> str:
    """Name the file with what a partition counted in a stage."""
    return f"stats/{written.batch}-{written.epoch:04d}-{partition}-{stage}.json"


def parse_counts(name: str) -> int | None:
    """Return the epoch of a file with what a partition counted, or of one that was being written."""
    match = re.match(r"\d{1,18}-(\d{4,9})-\d+-\d+\.json", name)
    return None if match is None else int(match[1])


def _parse(match: re.Match[str] | None) -> BatchAndEpoch | None:
    return None if match is None else BatchAndEpoch(int(match[1]), int(match[2]))
