"""Spill: store slices while a batch is still being built, so that memory need not hold all of them.

    rows ──some megabytes──▶ slices ──▶ spill ──▶ the same slices as their store holds them

A store in files returns slices that are mapped into memory, so that the memory of their rows is free again.
Few slices are not spilled: they are stored together when the batch is built.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from weir.kernel.slice import Slice

# Slices with so many bytes together are spilled: many times what a file costs, and little beside the memory
# of a process.
SPILL_BYTES = 1 << 26

# Stores slices that are large together, unless they are stored already; returns all of them as they are held.
Spill = Callable[[Sequence[Slice]], Sequence[Slice]]


class _Sized(Protocol):
    @property
    def bytes(self) -> int: ...


SizedT = TypeVar("SizedT", bound=_Sized)


def keep_in_memory(slices: Sequence[Slice]) -> Sequence[Slice]:
    """Spill nothing."""
    return slices


def are_large(slices: Iterable[Slice]) -> bool:
    """True if slices are worth spilling."""
    return sum(s.bytes for s in slices) >= SPILL_BYTES


def take_runs(chunks: Iterable[SizedT]) -> Iterator[list[SizedT]]:
    """Divide chunks, as they come, into runs that are just large enough to be spilled, and a last one."""
    run: list[SizedT] = []
    size = 0
    for chunk in chunks:
        run.append(chunk)
        size += chunk.bytes
        if size >= SPILL_BYTES:
            yield run
            run, size = [], 0
    if run:
        yield run


def spill_new(slices: Iterable[Slice], known: Collection[Slice], spill: Spill) -> Iterator[Slice]:
    """Pass slices on, and spill whenever those that are not `known` have become large together."""
    stored = set(map(id, known))
    passed: list[Slice] = []
    size = 0
    for slice_ in slices:
        passed.append(slice_)
        size += 0 if id(slice_) in stored else slice_.bytes
        if size >= SPILL_BYTES:
            yield from spill(passed)
            passed, size = [], 0
    yield from passed
