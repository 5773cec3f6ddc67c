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
    """The size of a search, and where it begins.

    With `killed_at`, a first driver was killed before that step. With `paused_at`, a second one repeats the
    batch that the first has meanwhile finished, and pauses before that step.
    """

    batches: int
    bounds: Bounds
    killed_at: str | None = None
    paused_at: str | None = None

    def __str__(self) -> str:
        begin = ""
        if self.killed_at is not None:
            begin = f" after one that was killed before {self.killed_at}"
        elif self.paused_at is not None:
            begin = f" beside one that repeats a finished batch and pauses before {self.paused_at}"
        drivers = f"2 drivers at a time of {self.bounds.starts} in all{begin}"
        return f"{self.batches} batches, 2 partitions, {drivers}, {self.bounds.cuts} power cuts"


# The whole protocol is searched to these sizes: a cut between two drivers, three drivers without one, a batch
# that is repeated when the power is cut, and a manifest that comes late.
_REPEATED = Size(1, Bounds(2, 1), killed_at="spark_commit")
_LATE = Size(2, Bounds(2, 0), paused_at="commit")
FULL = (Size(3, Bounds(2, 1)), Size(3, Bounds(3, 0)), _REPEATED, _LATE)
QUICK = (Size(1, Bounds(2, 1)), Size(2, Bounds(2, 0)), _REPEATED, _LATE)
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
        finding = find_violation(size, frozenset({safeguard}))
        if finding.violation is not None:
            break
    return finding


def find_violation(size: Size, without: frozenset[str] = frozenset()) -> Finding:
    """Search breadth first, so that the first violation found is one of the shortest."""
    protocol = Protocol(size.batches, without)
    first = _begin(size, protocol)
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


def _begin(size: Size, protocol: Protocol) -> World:
    disk = Disk().put(_FOREIGN, "results of another query", is_synced=True).sync("foreign")
    drivers: tuple[Driver, ...] = ()
    if size.killed_at is not None:
        _, disk = _run_until(size.killed_at, Driver(), disk, protocol)
    elif size.paused_at is not None:
        finishing, disk = _run_until("spark_commit", Driver(), disk, protocol)
        repeating, disk = _run_until("vacuum", Driver(), disk, protocol)
        _, disk = _run_until("plan", finishing, disk, protocol)
        repeating, disk = _run_until(size.paused_at, repeating, disk, protocol)
        drivers = (repeating,)
    return World(disk, drivers, frozenset(), size.bounds)


def _run_until(step: str, driver: Driver, disk: Disk, protocol: Protocol) -> tuple[Driver, Disk]:
    """Let a driver run alone until it is about to take a step."""
    while driver.step != step:
        after, disk = next(take_step(driver, disk, protocol))
        assert after is not None, f"the driver has stopped before {step}"
        driver = after
    return driver, disk


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
