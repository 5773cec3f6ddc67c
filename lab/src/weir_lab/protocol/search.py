"""Search every interleaving of two drivers, kills and power cuts for a state that must never be there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from weir_lab.protocol.disk import TORN, Content, Disk, Name
from weir_lab.protocol.driver import Driver, Protocol, Violation, take_step

_FOREIGN = Name("foreign")


class Bounds(NamedTuple):
    """How far the search goes: how many drivers start in all, and how often the power is cut.

    Two drivers run at a time; a third start kills one of them. (A driver that is killed and one that is never
    scheduled again do the same to the disk.)
    """

    starts: int = 3
    cuts: int = 1


@dataclass(frozen=True)
class Size:
    """The size of a search; with `killed_at`, it begins where a first driver was killed before that step."""

    batches: int
    bounds: Bounds
    killed_at: str | None = None


# The whole protocol is searched to these sizes: a cut between two drivers, three drivers without one, and a
# batch that is repeated when the power is cut.
_REPEATED = Size(1, Bounds(2, 1), killed_at="spark_commit")
FULL = (Size(3, Bounds(2, 1)), Size(3, Bounds(3, 0)), _REPEATED)
QUICK = (Size(1, Bounds(2, 1)), Size(2, Bounds(2, 0)), _REPEATED)
_LARGER = (Size(2, Bounds(2, 1)), Size(2, Bounds(3, 0)))


class World(NamedTuple):
    """The disk, the running drivers, what readers of the results may have seen, and what may still happen."""

    disk: Disk
    drivers: tuple[Driver, ...]
    seen: frozenset[tuple[Name, Content]]
    left: Bounds


@dataclass(frozen=True)
class Finding:
    """A violation and the steps that lead to it; without one, how many states there are."""

    states: int
    violation: str | None = None
    trace: tuple[str, ...] = ()


def find_fault(safeguard: str) -> Finding:
    """Search for what happens without a safeguard, in small searches first."""
    is_about_cuts = "sync" in safeguard
    for size in (*QUICK, *(_LARGER if is_about_cuts else reversed(_LARGER))):
        finding = find_violation(Protocol(size.batches, frozenset({safeguard})), size.bounds, size.killed_at)
        if finding.violation is not None:
            break
    return finding


def find_violation(protocol: Protocol, bounds: Bounds, killed_at: str | None = None) -> Finding:
    """Search breadth first, so that the first violation found is one of the shortest."""
    disk = Disk().put(_FOREIGN, "results of another query", is_synced=True).sync("foreign")
    if killed_at is not None:
        disk = _run_until(killed_at, disk, protocol)
    first = World(disk, (), frozenset(), bounds)
    came_from: dict[World, tuple[World, str] | None] = {first: None}
    queue, cut = deque([first]), set[World]()
    while queue:
        world = queue.popleft()
        # What a cut leaves does not depend on where the drivers were.
        without_drivers = world._replace(drivers=())
        cuts = () if without_drivers in cut else _cut_power(without_drivers)
        cut.add(without_drivers)
        try:
            for label, following in chain(_follow(world, protocol), cuts):
                following = _look(following, label)
                if following not in came_from:
                    came_from[following] = (world, label)
                    queue.append(following)
        except Violation as violation:
            return Finding(len(came_from), str(violation), _trace(world, came_from))
    return Finding(len(came_from))


def _run_until(step: str, disk: Disk, protocol: Protocol) -> Disk:
    """The disk as a first driver leaves it that is killed before it takes a step."""
    driver: Driver | None = Driver()
    while driver is not None and driver.step != step:
        driver, disk = next(take_step(driver, disk, protocol))
    return disk


def _follow(world: World, protocol: Protocol) -> Iterator[tuple[str, World]]:
    """Yield all that may happen next."""
    disk, drivers, left = world.disk, world.drivers, world.left
    if left.starts:
        fewer = left._replace(starts=left.starts - 1)
        survivors = [drivers] if len(drivers) < 2 else [drivers[:1], drivers[1:]]
        for running in survivors:
            yield "start", world._replace(drivers=tuple(sorted((*running, Driver()), key=_order)), left=fewer)
    for i, driver in enumerate(drivers):
        others = drivers[:i] + drivers[i + 1 :]
        for after, changed in take_step(driver, disk, protocol):
            running = others if after is None else tuple(sorted((*others, after), key=_order))
            yield f"{driver.epoch}: {driver.step}", world._replace(disk=changed, drivers=running)


def _cut_power(world: World) -> Iterator[tuple[str, World]]:
    left = world.left
    if left.cuts and left.starts:  # a cut that nobody goes on from shows nothing
        for shown in world.disk.cut():
            yield "power cut", world._replace(disk=shown, left=left._replace(cuts=left.cuts - 1))


def _order(driver: Driver) -> tuple[int, str]:
    return driver.epoch, driver.step


def _look(world: World, label: str) -> World:
    """Look at the results as any reader may, after every step."""
    if world.disk.read(_FOREIGN) != "results of another query":
        raise Violation("a file of another query was touched")
    seen = dict(world.seen)
    for name, content in world.disk.list("result").items():
        if content == TORN:
            raise Violation(f"{label}: {name} appears torn")
        if seen.setdefault(name, content) != content:
            raise Violation(f"{label}: {name} had {seen[name]}, now {content}")
    by_batch: dict[int, Content] = {}
    for name, content in seen.items():
        if by_batch.setdefault(name.batch, content) != content:
            raise Violation(f"{label}: partitions of batch {name.batch} have different results")
    return world._replace(seen=frozenset(seen.items()))


def _trace(world: World, came_from: dict[World, tuple[World, str] | None]) -> tuple[str, ...]:
    labels = list[str]()
    step = came_from[world]
    while step is not None:
        world, label = step
        labels.append(label)
        step = came_from[world]
    return tuple(reversed(labels))
