"""By which keys the rows of an mjoin are stored, so that partials find their partners by key (DESIGN 9).

What is correct: a hop looks into one copy of its partner's rows, stored by a key of the hop. Rows that join
by it have equal codes, so they lie where the partial goes, and a pair is found once. The codes of both sides
are those that slices hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.kernel.access import KeyAccess
from weir.kernel.ingest import fetch_from, key_codes
from weir.kernel.keys import Int64s, combine, mix
from weir.kernel.partial import Partial
from weir.kernel.program import HopPlan, Program
from weir.stats import Hop

# The stored code columns of one or more attribute classes, hashed together.
Key = tuple[str, ...]


@dataclass(frozen=True)
class Homes:
    """Partition `k * bins + b` holds the rows of bin b of key number k; `copies` names each stream's keys.

    A stream's rows set out from their first copy. `hops` has the number of the key that each hop goes by, or
    by which its partner is stored if it goes to all bins (`blind`); `moves` counts the longest way.
    """

    bins: int
    keys: tuple[Key, ...]
    copies: Mapping[str, tuple[int, ...]]
    hops: Mapping[Hop, int]
    blind: frozenset[Hop]
    moves: int

    @property
    def partitions(self) -> int:
        """How many there are, over all keys."""
        return self.bins * len(self.keys)

    def name(self, number: int) -> str:
        """A key as people read it."""
        return " and ".join(name.removesuffix("@key") for name in self.keys[number])

    def is_start(self, stream: str, partition: int) -> bool:
        """True if the rows of a stream set out from this partition, and are counted there."""
        return self.copies[stream][0] == partition // self.bins

    def is_here(self, hop: Hop, partition: int) -> bool:
        """True if partials in this partition have all their partners of a hop here as well."""
        return hop not in self.blind and self.hops[hop] == partition // self.bins

    def of_rows(self, program: Program, stream: str, rows: pa.Table) -> Iterator[Int64s]:
        """Copy by copy, the partition of each of a stream's rows."""
        layout, fetch = program.layouts[stream], fetch_from(rows)
        for number in self.copies[stream]:
            codes = [
                key_codes(layout.keys[name], layout.streams, fetch, rows.num_rows)
                for name in self.keys[number]
            ]
            yield self._partitions(number, codes)

    def of_partial(self, plan: HopPlan, partial: Partial) -> Iterator[tuple[int, Partial]]:
        """The rows of a partial by the partition in which they look for partners; all of them, if in each."""
        number, access = self.hops[plan.hop], plan.access
        if plan.hop in self.blind or not isinstance(access, KeyAccess):
            yield from ((number * self.bins + one, partial) for one in range(self.bins))
            return
        codes = dict(zip(access.names, access.codes(partial)[0], strict=True))
        partitions = self._partitions(number, [codes[name] for name in self.keys[number]])
        for one in np.unique(partitions).tolist():
            picks = np.flatnonzero(partitions == one)
            yield one, partial if len(picks) == partial.rows else partial.pick(picks)

    def _partitions(self, number: int, codes: Sequence[Int64s]) -> Int64s:
        bins = mix(combine(codes)).view(np.uint64) % np.uint64(self.bins)
        return number * self.bins + bins.astype(np.int64)


def homes(program: Program, bins: int) -> Homes:
    """As few copies of each stream as the hops of an mjoin can do with; every stream must have a key."""
    usable = _usable(program)
    leads = _leads(program, usable)
    ways = {path[0].hop.driver: _way(leads, usable, path) for path in program.root.paths}
    starts = {driver: _start(leads[driver], way) for driver, way in ways.items()}
    hops = {hop: lead for way in ways.values() for hop, lead in way}
    blind = frozenset(hop for hop, lead in hops.items() if lead not in usable[hop])
    # In an order that does not depend on the hops': rows stored for other ones stay where they are.
    names = sorted({name for found in leads.values() for name in found})
    copies = {stream: dict.fromkeys((starts[stream], *found)) for stream, found in leads.items()}
    return Homes(
        bins,
        tuple(
            _together(program, leads, name, [usable[h] for h in hops if hops[h] == name]) for name in names
        ),
        {stream: tuple(map(names.index, found)) for stream, found in copies.items()},
        {hop: names.index(lead) for hop, lead in hops.items()},
        blind,
        max(_moves(starts[driver], way, blind) for driver, way in ways.items()),
    )


# Every hop of a path with the key by which it finds its partner, or by which the partner is stored; keys of
# several classes go by the name of the first.
_Way = list[tuple[Hop, str]]


def _usable(program: Program) -> dict[Hop, frozenset[str]]:
    """The classes by which each hop finds candidates; none if it goes by values or time."""
    return {
        plan.hop: frozenset(plan.access.names if isinstance(plan.access, KeyAccess) else ())
        for path in program.root.paths
        for plan in path
    }


def _leads(program: Program, usable: Mapping[Hop, frozenset[str]]) -> dict[str, list[str]]:
    """The classes by which each stream is stored: those that its hops need, or any if they need none."""
    popular = Counter(name for names in usable.values() for name in names)
    found = {}
    for stream in program.root.inputs:
        sets = [names for hop, names in usable.items() if hop.partner == stream and names]
        found[stream] = _cover(sets, popular) or [next(iter(program.layouts[stream].keys))]
    return found


def _cover(sets: list[frozenset[str]], popular: Counter[str]) -> list[str]:
    """Few names of which each set has one, those first that are in most sets."""
    found = []
    while sets:
        held = Counter(name for names in sets for name in names)
        found.append(min(held, key=lambda name: (-held[name], -popular[name], name)))
        sets = [names for names in sets if found[-1] not in names]
    return found


def _way(
    leads: Mapping[str, list[str]], usable: Mapping[Hop, frozenset[str]], path: tuple[HopPlan, ...]
) -> _Way:
    """Each hop goes, where it can, by the key by which its partials lie already."""
    here, way = leads[path[0].hop.driver], []
    for hop in (plan.hop for plan in path):
        stored = leads[hop.partner]
        fits = [name for name in stored if name in usable[hop]] or stored[:1]
        here = [next((name for name in fits if name in here), fits[0])]
        way.append((hop, here[0]))
    return way


def _start(leads: list[str], way: _Way) -> str:
    """Where a driver's rows set out from: where their first partners are, if they are stored there."""
    return way[0][1] if way[0][1] in leads else leads[0]


def _moves(start: str, way: _Way, blind: frozenset[Hop]) -> int:
    before = [start, *(lead for _, lead in way[:-1])]
    return sum(hop in blind or lead != last for (hop, lead), last in zip(way, before, strict=True))


def _together(program: Program, leads: Mapping[str, list[str]], lead: str, sets: list[frozenset[str]]) -> Key:
    """A class and those that come with it everywhere: more of a condition spreads rows more evenly."""
    held = [frozenset(program.layouts[stream].keys) for stream, found in leads.items() if lead in found]
    shared = frozenset.intersection(*held, *(names for names in sets if lead in names))
    return (lead, *sorted(shared - {lead}))
