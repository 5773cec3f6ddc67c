"""A plain mjoin, a tuple at a time, as in figures 2 to 4 of Valsomatzis and Gounaris 2013.

Every policy calls the same function for every row: it inserts the row into its stream's hash table and probes
the others, most selective first. The policies differ in how they find the next row. Rows are their keys.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import process_time

from weir_lab.driver.course import MARKS, Course

Process = Callable[[int], int]
Buffers = Mapping[str, Sequence[int]]
# Between two looks at the clock, or looking would count for much.
_FEWEST = 20


class MJoin:
    """The hash tables of all streams, and a function for the rows of each."""

    def __init__(self, streams: Sequence[str]) -> None:
        tables: dict[str, dict[int, list[int]]] = {name: {} for name in streams}
        self.process: dict[str, Process] = {
            name: _processor(tables[name], [tables[other] for other in streams if other != name])
            for name in streams
        }

    def by_stream(self, order: Sequence[str], buffers: Buffers) -> Course:
        """One buffer after the other (figures 3 and 4)."""
        every = _every(buffers)
        marks, results = [], 0
        started = process_time()
        for name in order:
            process, buffer = self.process[name], buffers[name]
            for start in range(0, len(buffer), every):
                for key in buffer[start : start + every]:
                    results += process(key)
                marks.append((process_time() - started, results))
        return Course(tuple(marks))

    def as_told(self, owners: Sequence[str], keys: Sequence[int]) -> Course:
        """Rows in an order that was found before the clock started: the same loop, whatever the policy."""
        every = max(_FEWEST, len(keys) // MARKS)
        marks, results = [], 0
        started = process_time()
        for start in range(0, len(keys), every):
            stop = start + every
            for owner, key in zip(owners[start:stop], keys[start:stop], strict=True):
                results += self.process[owner](key)
            marks.append((process_time() - started, results))
        return Course(tuple(marks))

    def by_time(self, buffers: Buffers, times: Buffers) -> Course:
        """Each time the oldest row of all (figure 2)."""
        streams = [(self.process[name], iter(buffers[name]), iter(times[name])) for name in buffers]
        marks, results = [], 0
        left, every = sum(map(len, buffers.values())), _every(buffers)
        started = process_time()
        heads = [next(moments, math.inf) for _, _, moments in streams]
        for start in range(0, left, every):
            for _ in range(min(every, left - start)):
                place = heads.index(min(heads))
                process, keys, moments = streams[place]
                heads[place] = next(moments, math.inf)
                results += process(next(keys))
            marks.append((process_time() - started, results))
        return Course(tuple(marks))

    def in_turn(self, buffers: Buffers) -> Course:
        """The oldest row left of each stream in turn."""
        waits = [(self.process[name], iter(keys)) for name, keys in buffers.items()]
        marks, results = [], 0
        rounds = max(1, _every(buffers) // len(waits))
        started = process_time()
        while waits:
            for _ in range(rounds):
                for queue in tuple(waits):
                    process, keys = queue
                    key = next(keys, None)
                    if key is None:
                        waits.remove(queue)
                    else:
                        results += process(key)
            marks.append((process_time() - started, results))
        return Course(tuple(marks))


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """No collection of garbage, whose moment would be chance; nothing here makes any that needs it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _every(buffers: Buffers) -> int:
    return max(_FEWEST, sum(map(len, buffers.values())) // MARKS)


def _processor(own: dict[int, list[int]], others: Sequence[dict[int, list[int]]]) -> Process:
    stored = own.get
    first, *rest = [table.get for table in others]

    def process(key: int) -> int:
        """Store a row, find its results and say how many."""
        rows = stored(key)
        if rows is None:
            own[key] = [key]
        else:
            rows.append(key)
        partials: Sequence[object] | None = first(key)
        if partials is None:
            return 0
        for probe in rest:
            partials = [(partial, other) for partial in partials for other in probe(key, ())]
            if not partials:
                return 0
        return len(partials)

    return process
