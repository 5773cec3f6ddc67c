"""Rows stored by keys and partials that go where these say find the relational join, each result once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from weir.kernel import (
    Decision,
    Homes,
    Parcel,
    Program,
    Relay,
    State,
    Work,
    build,
    commit,
    compile_plan,
    homes,
    watermark_after,
)
from weir.local.tables import conform
from weir.plan import Join, Leaf

from . import conditions
from .case import Case
from .generate import RANGE, UNITS, extras, inputs, orders, sizes, tied
from .reference import Results, admit, by_duckdb
from .run import asked, compare, explore, results

EQUALITIES = (
    *(conditions.equal,) * 4,
    conditions.null_safe,
    conditions.equal_across_types,
    conditions.equal_twice,
    conditions.equal_to_two,
    conditions.equal_expressions,
)


@st.composite
def keyed(draw: st.DrawFn) -> Case:
    """A tree of equalities, an mjoin with any probing orders, and more conditions of any kind."""
    names = "abcde"[: draw(st.sampled_from((3, 3, 4, 5)))]
    rng = Random(draw(st.integers(0, 2**32)))
    found = tied(names, EQUALITIES, rng) + extras(names, (conditions.band, conditions.equal), rng)
    unit = rng.choice(UNITS)
    rows = sizes(draw, len(names), {3: 40, 4: 24, 5: 14}[len(names)])
    windows = [rng.randint(RANGE // 2, RANGE) * unit for _ in names]
    flat = Join(tuple(map(Leaf, names)), tuple(orders(len(names), rng)))
    streams = inputs(draw, names, found, rows, windows, unit, rng)
    return Case(streams, tuple(found), flat, tuple(rng.sample(names, len(names))))


def test_what_moves_by_key_finds_the_relational_join() -> None:
    seen = set()

    def check(case: Case) -> Results:
        kept = {name: [row for _, row in rows] for name, rows in admit(case).rows.items()}
        wanted = by_duckdb(case, kept)
        join = asked(case)
        program = compile_plan(join.query, join.planned.plan)
        ring = _Ring(program, homes(program, bins=3))
        found = Results()
        for batch in range(case.batches):
            tables = {one.name: conform(join.query.stream(one.name), one.batch(batch)) for one in case.inputs}
            found += results(ring.process(tables, case.driver_order))
        compare(found, wanted)
        # Whatever the probing orders, a partition's number means the same.
        assert list(ring.homes.keys) == sorted(ring.homes.keys)
        seen.add((ring.homes.moves, bool(ring.homes.blind), max(map(len, ring.homes.keys)) > 1))
        return wanted

    explore(keyed(), check, examples=60)
    # All kinds of ways were gone: none, one and several moves, hops without a key, keys of several classes.
    assert {moves for moves, _, _ in seen} >= {0, 1, 2}
    assert {blind for _, blind, _ in seen} == {several for _, _, several in seen} == {True, False}


class _Ring:
    """Partitions in one process."""

    def __init__(self, program: Program, found: Homes) -> None:
        self.program, self.homes = program, found
        self.states = {number: State() for number in range(found.partitions)}
        self.batch = 0

    def process(self, tables: Mapping[str, pa.Table], order: tuple[str, ...] | None) -> pa.Table:
        decision = Decision(self.program.plan, order or "auto")
        for number, mine in self._divided(tables).items():
            built = build(self.program, decision, self.states[number], mine, self.batch, Work())
            self.states[number] = built.state
        relay = Relay(self.program, decision, self.batch)
        found = [chunk for number in self.states for chunk in self._from(number, relay)]
        self._commit()
        self.batch += 1
        return pa.concat_tables(found) if found else pa.table({})

    def _divided(self, tables: Mapping[str, pa.Table]) -> dict[int, dict[str, pa.Table]]:
        found: dict[int, dict[str, pa.Table]] = defaultdict(dict)
        for name, rows in tables.items():
            for partitions in self.homes.of_rows(self.program, name, rows):
                for number in np.unique(partitions).tolist():
                    found[number][name] = rows.filter(pa.array(partitions == number))
        return found

    def _from(self, number: int, relay: Relay) -> list[pa.Table]:
        drivers = [name for name in self.homes.copies if self.homes.is_start(name, number)]
        found: list[pa.Table] = []
        for parcel in relay.start(self.states[number], Work(), drivers):
            found += self._on(number, parcel, relay, self.homes.moves)
        return found

    def _on(self, number: int, parcel: Parcel, relay: Relay, moves: int) -> list[pa.Table]:
        """The results of a parcel that is in a partition and may move so many times."""
        if relay.is_done(parcel):
            return list(relay.results(parcel, Work()))
        plan, found = relay.next_hop(parcel), []
        targets = list(self.homes.of_partial(plan, parcel.partial))
        if self.homes.is_here(plan.hop, number):
            assert [target for target, _ in targets] == [number]
        else:
            moves -= 1
        assert moves >= 0
        for target, rows in targets:
            for longer in relay.visit(replace(parcel, partial=rows), self.states[target], Work()):
                found += self._on(target, longer, relay, moves)
        return found

    def _commit(self) -> None:
        newest: dict[str, int] = {}
        for state in self.states.values():
            for name, time in state.newest.items():
                newest[name] = max(time, newest.get(name, time))
        some = next(iter(self.states.values()))
        watermark = watermark_after(self.program, some.watermark, newest)
        for number, state in self.states.items():
            self.states[number] = commit(self.program, replace(state, watermark=watermark, newest=newest))
