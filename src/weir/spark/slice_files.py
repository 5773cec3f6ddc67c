"""Store slices in immutable, checksummed Arrow files: one per state, partition and batch, or for each 64 MB.

Each attempt of a task writes files of its own names and returns their entries; only files that a manifest
names count. Local files are memory-mapped, so that all workers of a host share one copy. A file says what its
slices hold; those of an earlier query are adapted to the present one when they are opened.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.fs as pafs

from weir.codec import from_json, to_json
from weir.kernel.keys import Floats, Int64s
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.slice import Slice
from weir.kernel.state_adaptation import StateAdapter, StoredForm, describe_form
from weir.kernel.state_schema import StateSchema
from weir.runtime.partition_batch import SliceEntry, Thinning
from weir.spark.errors import DamagedStateError, damaged_state
from weir.spark.state_names import BatchAndEpoch, name_slice
from weir.spark.worker_files import local_path, open_output, open_path

# Slices that this worker process has open: many batches probe a slice, and its indexes are built once.
_OPEN: dict[tuple[str, tuple[str, int], Thinning | None], Slice] = {}
# The column with the rank of each row, in slices whose rows differ in rank.
_RANK = "@rank"
# The column with the weight of each row, in slices of which some rows stand for several.
_WEIGHT = "@weight"
# The most bytes of a file, unless a single slice has more.
_FILE_BYTES = 1 << 27
# Where the metadata of a file says what its slices hold.
_FORM = b"weir.form"


@dataclass(frozen=True)
class FileStore:
    """The slices of a query, in files of the folder `root`.

    `filled` names columns that sources did not have when some slices were stored; new files carry the `epoch`
    of their driver.
    """

    root: str
    filled: tuple[str, ...] = ()
    epoch: int = 1

    def read(self, entry: SliceEntry, physical: PhysicalPlan) -> Slice:
        """Return the slice of an entry, from the cache of this process or from its file."""
        schema, sort = physical.schema_of(entry.node), physical.sorts.get(entry.node)
        if schema is None:
            raise DamagedStateError(
                f"slice {entry.file} belongs to '{entry.node}', which this query does not have"
            )
        key = (self.root, entry.place, entry.thinning)
        cached = _OPEN.get(key)
        if cached is not None and _has_columns_of(cached, schema):
            return cached
        form, batches = _read_file(f"{self.root}/{entry.file}", entry.checksum)
        rows = entry.rows if entry.thinning is None else entry.thinning.rows
        if not 0 <= entry.index < len(batches) or batches[entry.index].num_rows != rows:
            raise damaged_state(f"slice {entry.file} does not hold what its manifest says")
        data, ranks, weights = _split_columns(batches[entry.index])
        stored = Slice(
            schema=schema,
            batch=entry.batch,
            rank=entry.rank,
            data=data,
            sorted_by=sort if str(sort) == entry.sorted_by else None,
            spans=dict(entry.spans),
            deadline=entry.deadline,
            ranks=ranks,
            weights=weights,
            is_rest=entry.is_rest,
        )
        if entry.thinning is not None:
            stored = entry.thinning.apply(stored)
        wanted = describe_form(schema)
        if form != wanted or data.schema.names != schema.arrow_schema.names:
            times = {stream.name: stream.time for stream in physical.query.streams}
            stored = _adapt(stored, StateAdapter(form, schema, times, self.filled), wanted, entry.file)
        _OPEN[key] = stored
        return stored

    def write(self, batch: int, partition: int, slices: Sequence[Slice]) -> list[SliceEntry]:
        """Write slices, those of one state with the same columns into one file; return an entry for each.

        A file is put together in memory, so that many bytes go into several files.
        """
        by_columns: dict[tuple[str, bool, bool], list[int]] = {}
        for number, new in enumerate(slices):
            columns = new.schema.node, new.ranks is None, new.weights is None
            by_columns.setdefault(columns, []).append(number)
        files = [run for numbers in by_columns.values() for run in _divide_by_bytes(numbers, slices)]
        entries: dict[int, SliceEntry] = {}
        for file_number, numbers in enumerate(files):
            name = name_slice(BatchAndEpoch(batch, self.epoch), partition, file_number)
            checksum = _write_file(self.root, name, [slices[number] for number in numbers])
            for index, number in enumerate(numbers):
                entries[number] = SliceEntry.of(slices[number], name, index, checksum)
        return [entries[number] for number in range(len(slices))]

    def reopen(self, entry: SliceEntry, written: Slice) -> Slice:
        """Return a slice that was just written: mapped from its file, or itself if that would be a copy."""
        uri = f"{self.root}/{entry.file}"
        if local_path(uri) is None:
            return written
        _, batches = _read_file(uri, entry.checksum)
        data, ranks, weights = _split_columns(batches[entry.index])
        mapped = replace(written, data=data, ranks=ranks, weights=weights, _cache={})
        _OPEN[self.root, entry.place, entry.thinning] = mapped
        return mapped

    def retain(self, live: Iterable[SliceEntry]) -> None:
        """Close slices of this query that are no longer live."""
        named = {(self.root, entry.place, entry.thinning) for entry in live}
        for key in [key for key in _OPEN if key[0] == self.root and key not in named]:
            del _OPEN[key]


def _has_columns_of(cached: Slice, schema: StateSchema) -> bool:
    """True if an open slice has the columns of a schema, in its order, which another query may differ in."""
    known = cached.schema
    in_order = tuple(known.sources) == tuple(schema.sources) and tuple(known.keys) == tuple(schema.keys)
    return in_order and known == schema


def _divide_by_bytes(numbers: Sequence[int], slices: Sequence[Slice]) -> list[list[int]]:
    """Divide slices, given by their numbers, into runs of at most about `_FILE_BYTES`."""
    runs: list[list[int]] = [[]]
    size = 0
    for number in numbers:
        if runs[-1] and size + slices[number].bytes > _FILE_BYTES:
            runs.append([])
            size = 0
        runs[-1].append(number)
        size += slices[number].bytes
    return runs


def _write_file(root: str, name: str, slices: Sequence[Slice]) -> int:
    sink = pa.BufferOutputStream()
    batches = [_join_columns(new) for new in slices]
    form = json.dumps(to_json(describe_form(slices[0].schema))).encode()
    with pa.ipc.new_file(sink, batches[0].schema.with_metadata({_FORM: form})) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data = sink.getvalue()
    with open_output(f"{root}/{name}") as stream:
        stream.write(data)
    return zlib.crc32(data)


def _join_columns(new: Slice) -> pa.RecordBatch:
    """Add the columns of ranks and weights, if there are any: a second job may probe the batch's slices."""
    data = new.data if new.ranks is None else new.data.append_column(_RANK, pa.array(new.ranks))
    return data if new.weights is None else data.append_column(_WEIGHT, pa.array(new.weights))


def _split_columns(stored: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64s | None, Floats | None]:
    ranks, weights = (
        stored.column(name).to_numpy() if name in stored.schema.names else None for name in (_RANK, _WEIGHT)
    )
    return stored.drop_columns([n for n in (_RANK, _WEIGHT) if n in stored.schema.names]), ranks, weights


def _adapt(stored: Slice, adapter: StateAdapter, wanted: StoredForm, file: str) -> Slice:
    """Give a slice the columns of its schema; its rows count as unsorted where their keys are new."""
    if adapter.find_missing() is not None:
        raise damaged_state(f"slice {file} does not hold what its manifest says")
    data, kept = adapter.adapt(stored.data)
    ranks = stored.ranks if stored.ranks is None or kept is None else stored.ranks[kept]
    weights = stored.weights if stored.weights is None or kept is None else stored.weights[kept]
    is_sorted = kept is None and adapter.form.keys == wanted.keys
    sorted_by = stored.sorted_by if is_sorted else None
    return replace(stored, data=data, ranks=ranks, weights=weights, sorted_by=sorted_by, _cache={})


@lru_cache(maxsize=16)
def _read_file(uri: str, checksum: int) -> tuple[StoredForm, tuple[pa.RecordBatch, ...]]:
    files, path = open_path(uri)
    try:
        is_local = isinstance(files, pafs.LocalFileSystem)
        with pa.memory_map(path) if is_local else files.open_input_file(path) as source:
            data = source.read_buffer()
    except FileNotFoundError:
        raise damaged_state(f"slice {uri} is missing") from None
    if zlib.crc32(data) != checksum:
        raise damaged_state(f"slice {uri} is damaged: its checksum differs")
    reader = pa.ipc.open_file(data)
    form = from_json(StoredForm, json.loads(reader.schema.metadata[_FORM]))
    # Batches carry no metadata, so that those of different files can be put together.
    batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    return form, tuple(batch.replace_schema_metadata(None) for batch in batches)
