"""Slices as files: immutable, checksummed Arrow files, one per state, partition and batch.

A task writes them under a name of its own attempt and returns their entries; only what the driver puts into a
manifest counts. Local files are mapped, so that all workers of a host share one copy in memory.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.slice import Slice
from weir.spark.errors import DamagedStateError
from weir.spark.filesystem import local_path

# Hadoop's names for what Arrow calls otherwise.
_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "gcs": "gs"}


@dataclass(frozen=True, slots=True)
class SliceEntry:
    """Where one slice lies, and what a manifest must know of it."""

    node: str
    file: str
    index: int
    batch: int
    rank: int
    window: int
    rows: int
    bytes: int
    spans: Mapping[str, tuple[int, int]]
    deadline: int | None
    sorted_by: str
    checksum: int

    def to_json(self) -> dict[str, Any]:
        """As it stands in a manifest."""
        return asdict(self)

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> SliceEntry:
        """The entry of `to_json`."""
        spans = {name: (first, last) for name, (first, last) in entry["spans"].items()}
        return SliceEntry(**{**entry, "spans": spans})


def open_path(uri: str) -> tuple[pafs.FileSystem, str]:
    """The file system a worker reaches a URI by, and the path in it."""
    local = local_path(uri)
    if local is not None:
        return pafs.LocalFileSystem(), local
    scheme, rest = uri.split("://", 1)
    found: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}://{rest}")
    return found


def open_output(uri: str) -> pa.NativeFile:
    """A file to be written by a worker; on a local disk its folder is made first."""
    files, path = open_path(uri)
    if isinstance(files, pafs.LocalFileSystem):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    return files.open_output_stream(path)


def write_slices(
    root: str, batch: int, partition: int, slices: Iterable[Slice]
) -> tuple[tuple[SliceEntry, Slice], ...]:
    """Write slices, those of one state into one file, and say where each lies."""
    by_node: dict[str, list[Slice]] = {}
    for one in slices:
        by_node.setdefault(one.layout.node, []).append(one)
    found: list[tuple[SliceEntry, Slice]] = []
    for number, (node, group) in enumerate(by_node.items()):
        name = f"{batch:09d}-{partition:04d}-{number:02d}-{uuid.uuid4().hex[:12]}.arrow"
        checksum = _write_file(root, name, group)
        found += [(_entry(node, name, i, one, checksum), one) for i, one in enumerate(group)]
    return tuple(found)


def _write_file(root: str, name: str, slices: Sequence[Slice]) -> int:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, slices[0].data.schema) as writer:
        for one in slices:
            writer.write_batch(one.data)
    data = sink.getvalue()
    with open_output(f"{root}/{name}") as stream:
        stream.write(data)
    return zlib.crc32(data)


def _entry(node: str, name: str, index: int, one: Slice, checksum: int) -> SliceEntry:
    return SliceEntry(
        node=node,
        file=name,
        index=index,
        batch=one.batch,
        rank=one.rank,
        window=one.window,
        rows=one.rows,
        bytes=one.bytes,
        spans=one.spans,
        deadline=one.deadline,
        sorted_by=str(one.sorted_by),
        checksum=checksum,
    )


def read_slice(root: str, entry: SliceEntry, program: PhysicalPlan) -> Slice:
    """The slice of an entry; its rows are mapped, not copied, where the file is local."""
    layout, sort = program.layout_of(entry.node), program.sorts.get(entry.node)
    if layout is None:
        raise DamagedStateError(
            f"slice {entry.file} belongs to '{entry.node}', which this query does not have"
        )
    key = (root, entry.file, entry.index)
    found = _OPEN.get(key)
    if found is not None and found.layout == layout:
        return found
    data = _record_batches(f"{root}/{entry.file}", entry.checksum)[entry.index]
    if data.num_rows != entry.rows or data.schema.names != layout.schema.names:
        raise DamagedStateError(
            f"slice {entry.file} does not hold what its manifest says; restore it or start anew"
        )
    one = Slice(
        layout=layout,
        batch=entry.batch,
        rank=entry.rank,
        window=entry.window,
        data=data,
        sorted_by=sort if str(sort) == entry.sorted_by else None,
        spans=dict(entry.spans),
        deadline=entry.deadline,
    )
    _OPEN[key] = one
    return one


# The slices a worker process has open: a slice is probed by many batches, its indexes made once.
_OPEN: dict[tuple[str, str, int], Slice] = {}


def close_others(root: str, live: Iterable[SliceEntry]) -> None:
    """Let go of a query's slices that are no longer live."""
    named = {(root, entry.file, entry.index) for entry in live}
    for key in [k for k in _OPEN if k[0] == root and k not in named]:
        del _OPEN[key]


@lru_cache(maxsize=16)
def _record_batches(uri: str, checksum: int) -> tuple[pa.RecordBatch, ...]:
    files, path = open_path(uri)
    try:
        if isinstance(files, pafs.LocalFileSystem):
            with pa.memory_map(path) as source:
                data = source.read_buffer()
        else:
            with files.open_input_file(path) as source:
                data = source.read_buffer()
    except FileNotFoundError:
        raise DamagedStateError(
            f"slice {uri} is missing; restore it or start anew with another checkpoint"
        ) from None
    if zlib.crc32(data) != checksum:
        raise DamagedStateError(f"slice {uri} is damaged: its checksum differs; restore it or start anew")
    reader = pa.ipc.open_file(data)
    return tuple(reader.get_batch(i) for i in range(reader.num_record_batches))
