"""The steps of a driver, from its start to Spark's commit of each batch, as weir and Spark run them.

    take_epoch  mend_checkpoint  then for each batch
    plan  vacuum  decide  record  build  sync_batch  check_epoch  publish  sync_results  commit
    sync_manifests  spark_commit

They have the names of `weir.runtime.batch_events.PHASES`. Some of those are in two parts here, since anything
may happen in between: `record` ends `decide`, `check_epoch` ends `sync_batch`, and `sync_manifests` ends
`commit`. `plan` is Spark's.

A step reads and changes the disk at once; between two steps anything may happen. `Protocol.without` names
what is left out, to show that the search finds it. Two decisions may find different results; the smaller one
of a batch that failed often finds the same (it only bounds the candidates in flight), so it is not here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from weir_lab.protocol.disk import ABSENT, TORN, Content, Disk, Name

PARTITIONS = (0, 1)
_RETAINED = 2


class Violation(Exception):  # noqa: N818 - what was found, not an error of this program
    """A state that must never be there."""


@dataclass(frozen=True)
class Protocol:
    """How many batches there are, and which safeguards are left out."""

    batches: int = 3
    without: frozenset[str] = frozenset()

    def has(self, safeguard: str) -> bool:
        """True unless the safeguard is left out."""
        assert safeguard in SAFEGUARDS, safeguard
        return safeguard not in self.without


# What the protocol consists of beside the steps themselves. Each is needed: `search.find_violation` shows it.
SAFEGUARDS = {
    "epochs are taken exclusively": "two drivers never have the same epoch",
    "a recorded decision is followed": "a repeat finds the same results",
    "the epoch is checked before publishing": "a driver that was overtaken publishes by no other decision",
    "sync_batch: decision": "a repeat after a cut knows how the published results were found",
    "sync_batch: Spark's offsets": "a repeat after a cut has the rows of the published results",
    "sync_batch: Spark's commits": "a batch whose predecessor's commit is torn has published nothing",
    "sync_batch: hidden results": "a result file is complete when it appears",
    "sync_results: results": "Spark's commit does not outlive the results",
    "sync_results: slices": "a manifest names whole slices",
    "sync_results: manifest": "a manifest is complete when it appears",
    "sync_manifests": "Spark's commit does not outlive the manifest",
    "manifest names carry the epoch": "a late manifest replaces no other",
    "vacuum spares higher epochs": "an overtaken driver deletes no slice of its successor",
    "vacuum waits for a commit of its own": "a late manifest of an overtaken driver stays whole",
    "result names carry the query's id": "no file of another query is touched",
    "torn commits are removed": "Spark starts after a cut, and repeats the batch",
    "torn offsets are removed": "Spark starts after a cut, and plans the batch again",
    "torn decisions are removed": "a batch that published nothing is decided again",
    "torn decisions of repeats are removed": "a batch that is repeated follows its whole decision",
}


class Manifest(NamedTuple):
    """The slices that a manifest names, as (batch, epoch)."""

    slices: tuple[tuple[int, int], ...]


class Results(NamedTuple):
    """What a result file holds follows from the rows of its batch and from the decision."""

    rows: Content
    decision: Content


class Driver(NamedTuple):
    """A running driver: where it is, and what it remembers; `step` is the one that it takes next."""

    epoch: int = 0
    step: str = "take_epoch"
    batch: int = -1
    decision: Content = None
    published: int = 0
    before: tuple[tuple[int, int], ...] = ()  # the slices of the manifest that the batch starts from
    has_committed: bool = False

    def at(self, step: str) -> Driver:
        """The driver before another step."""
        return self._replace(step=step)


# By whether the batch has a manifest.
_REMOVES_TORN = {False: "torn decisions are removed", True: "torn decisions of repeats are removed"}
Outcome = tuple[Driver | None, Disk]  # without a driver: it has stopped, or is done


def take_step(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    """Yield what may come of the driver's next step; raise a `Violation` if it cannot go on."""
    yield from STEPS[driver.step](driver, disk, protocol)


def _take_epoch(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    epoch = 1 + max((name.epoch for name in disk.list("epoch")), default=0)
    if not protocol.has("epochs are taken exclusively") and epoch > 1:
        yield driver._replace(epoch=epoch - 1, step="mend_checkpoint"), disk
    yield driver._replace(epoch=epoch, step="mend_checkpoint"), disk.put(Name("epoch", epoch=epoch), "taken")


def _mend_checkpoint(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    """Remove what a power cut has torn, before Spark reads its logs; then see which batch is next."""
    manifests = {name.batch for name in disk.list("manifest")}
    if TORN in disk.list("manifest").values():
        raise Violation("stuck: a manifest is torn")
    for name, content in disk.list("commits").items():
        if content == TORN:
            if not protocol.has("torn commits are removed"):
                raise Violation(f"stuck: Spark cannot read {name}")
            disk = _forget_batch(disk.delete(name), name.batch + 1)
    for name, content in disk.list("offsets").items():
        if content == TORN:
            if not protocol.has("torn offsets are removed") or name.batch in manifests:
                raise Violation(f"stuck: Spark cannot read {name}")
            disk = _forget_batch(disk, name.batch)
    for name, content in disk.list("decision").items():
        if content == TORN:
            if not protocol.has(_REMOVES_TORN[name.batch in manifests]) or not _may_forget(disk, name):
                raise Violation(f"stuck: {name} is torn")
            disk = disk.delete(name)
    newest = max((name.batch for name in disk.list("offsets")), default=-1)
    is_done = disk.read(Name("commits", newest)) != ABSENT
    step = "plan" if is_done or newest < 0 else "vacuum"
    yield driver._replace(batch=newest + 1 if step == "plan" else newest, step=step), disk


def _forget_batch(disk: Disk, batch: int) -> Disk:
    """Remove what Spark and weir have recorded of a batch that was not synced, so that it is planned anew."""
    for kind in ("offsets", "decision"):
        for name in disk.list(kind):
            disk = disk.delete(name) if name.batch == batch else disk
    return disk


def _may_forget(disk: Disk, torn: Name) -> bool:
    """True for a torn decision of a batch without a manifest, or one that has a whole decision beside it."""
    manifests = {name.batch for name in disk.list("manifest")}
    others = (content for name, content in disk.list("decision").items() if name.batch == torn.batch)
    return torn.batch not in manifests or any(content != TORN for content in others)


def _plan(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    """Spark fixes the rows of the next batch; which rows there are may differ from time to time."""
    if driver.batch == protocol.batches:
        _check_end(disk, protocol)
        yield None, disk
        return
    name = Name("offsets", driver.batch)
    if disk.read(name) != ABSENT:
        yield None, disk  # another driver was faster: Spark ends this one
        return
    yield driver.at("vacuum"), disk.put(name, f"rows of {driver.epoch}")


def _vacuum(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    """Read the manifest before the batch, and vacuum."""
    before = _read_manifest(disk, driver.batch - 1)[1].slices if driver.batch else ()
    driver = driver._replace(before=before, step="decide")
    _check_slices(driver, disk)
    yield driver, _delete_unnamed(driver, disk, protocol)


def _check_slices(driver: Driver, disk: Disk) -> None:
    """Tasks read the slices that the batch starts from; that of an overtaken driver may fail."""
    for slice_ in driver.before:
        if disk.read(Name("slice", *slice_)) != "rows" and not _is_overtaken(driver, disk):
            raise Violation(f"stuck: batch {driver.batch} needs slice {slice_}")


def _read_manifest(disk: Disk, batch: int) -> tuple[int, Manifest]:
    manifests = {
        name.epoch: content for name, content in disk.list("manifest").items() if name.batch == batch
    }
    if not manifests:
        raise Violation(f"stuck: there is no manifest {batch}")
    epoch = max(manifests)
    manifest = manifests[epoch]
    if not isinstance(manifest, Manifest):
        raise Violation(f"stuck: manifest {batch} is torn")
    return epoch, manifest


def _delete_unnamed(driver: Driver, disk: Disk, protocol: Protocol) -> Disk:
    """Delete slices that no retained manifest names, as far as this driver knows them."""
    if protocol.has("vacuum waits for a commit of its own") and not driver.has_committed:
        return disk
    named: set[tuple[int, int]] = set()
    for name, manifest in disk.list("manifest").items():
        is_retained = driver.batch - _RETAINED <= name.batch < driver.batch
        if is_retained and name.epoch <= driver.epoch and isinstance(manifest, Manifest):
            named |= set(manifest.slices)
    for name in disk.list("slice"):
        batch, epoch = name.batch, name.epoch
        is_spared = protocol.has("vacuum spares higher epochs") and epoch > driver.epoch
        if batch < driver.batch and not is_spared and (batch, epoch) not in named:
            disk = disk.delete(name)
    return disk


def _decide(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    """Follow the recorded decision, or decide."""
    decisions = {n.epoch: content for n, content in disk.list("decision").items() if n.batch == driver.batch}
    if not decisions or not protocol.has("a recorded decision is followed"):
        yield _choose(driver, f"decision of {driver.epoch}"), disk
        return
    newest = decisions[max(decisions)]
    yield _choose(driver, newest), disk


def _choose(driver: Driver, decision: Content) -> Driver:
    return driver._replace(decision=decision, step="record")


def _record(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    yield driver.at("build"), disk.put(Name("decision", driver.batch, driver.epoch), driver.decision)


def _is_overtaken(driver: Driver, disk: Disk) -> bool:
    return any(name.epoch > driver.epoch for name in disk.list("epoch"))


def _build(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    """Tasks write slices and hidden results."""
    batch, epoch = driver.batch, driver.epoch
    _check_slices(driver, disk)
    results = Results(disk.read(Name("offsets", batch)), driver.decision)
    disk = disk.put(Name("slice", batch, epoch), "rows")
    for partition in PARTITIONS:
        disk = disk.put(Name("hidden", batch, epoch, partition), results)
    yield driver.at("sync_batch"), disk


def _sync_batch(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    for safeguard, kind in (
        ("sync_batch: decision", "decision"),
        ("sync_batch: Spark's offsets", "offsets"),
        ("sync_batch: Spark's commits", "commits"),
        ("sync_batch: hidden results", "hidden"),
    ):
        disk = disk.sync(kind) if protocol.has(safeguard) else disk
    yield driver.at("check_epoch"), disk


def _check_epoch(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    is_checked = protocol.has("the epoch is checked before publishing")
    yield None if is_checked and _is_overtaken(driver, disk) else driver.at("publish"), disk


def _publish(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    """Rename one result file; after the last, sweep other names of the batch."""
    partition = driver.published
    hidden = Name("hidden", driver.batch, driver.epoch, partition)
    disk = disk.move(hidden, Name("result", driver.batch, partition=partition))
    if partition + 1 < len(PARTITIONS):
        yield driver._replace(published=partition + 1), disk
        return
    if not protocol.has("result names carry the query's id"):
        disk = disk.delete(Name("foreign"))
    yield driver._replace(published=0, step="sync_results"), disk


def _sync_results(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    for safeguard, kind in (("sync_results: results", "result"), ("sync_results: slices", "slice")):
        disk = disk.sync(kind) if protocol.has(safeguard) else disk
    yield driver.at("commit"), disk


def _commit(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    batch, epoch = driver.batch, driver.epoch
    name = Name("manifest", batch, epoch if protocol.has("manifest names carry the epoch") else 0)
    manifest = Manifest(((batch, epoch), *driver.before[:1]))
    disk = disk.put(name, manifest, is_synced=protocol.has("sync_results: manifest"))
    yield driver._replace(step="sync_manifests", has_committed=True), disk


def _sync_manifests(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    yield driver.at("spark_commit"), disk.sync("manifest") if protocol.has("sync_manifests") else disk


def _spark_commit(driver: Driver, disk: Disk, protocol: Protocol) -> Iterator[Outcome]:
    name = Name("commits", driver.batch)
    if disk.read(name) != ABSENT:
        yield None, disk  # another driver was faster: Spark ends this one
        return
    after = driver._replace(batch=driver.batch + 1, decision=None, before=(), step="plan")
    yield after, disk.put(name, "done")


def _check_end(disk: Disk, protocol: Protocol) -> None:
    """All batches are committed: every result must be there."""
    for batch in range(protocol.batches):
        for partition in PARTITIONS:
            if not isinstance(disk.read(Name("result", batch, partition=partition)), Results):
                raise Violation(f"lost: results of batch {batch}, partition {partition}")


STEPS = {
    "take_epoch": _take_epoch,
    "mend_checkpoint": _mend_checkpoint,
    "plan": _plan,
    "vacuum": _vacuum,
    "decide": _decide,
    "record": _record,
    "build": _build,
    "sync_batch": _sync_batch,
    "check_epoch": _check_epoch,
    "publish": _publish,
    "sync_results": _sync_results,
    "commit": _commit,
    "sync_manifests": _sync_manifests,
    "spark_commit": _spark_commit,
}
