"""What the checkpoint says of each batch: the job, the decision before it, the manifest after it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from weir.adapt.recall import Recall
from weir.adapt.skew import SkewMonitor
from weir.adapt.slice_summary import SliceSummary
from weir.adapt.statistics import Statistics
from weir.kernel.decision import Decision
from weir.order.policies import DriverOrder
from weir.partition.placement import SHARED, Placement
from weir.plan.tree import Join, is_composed
from weir.query.describe import describe
from weir.query.model import Query
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.spark.errors import ChangedQueryError, DamagedStateError
from weir.spark.filesystem import Folder
from weir.spark.plan_json import plan_from_json, tree_to_json
from weir.spark.report import PartitionState
from weir.spark.slice_files import SliceEntry
from weir.stats.batch import Hop, StateSize

VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """All that batch N + 1 starts from; `plan` is the one decided, though another may still answer."""

    batch: int = -1
    watermark: int | None = None
    newest: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[int, PartitionState] = field(default_factory=dict)
    recall: Recall = field(default_factory=Recall)
    statistics: Statistics = field(default_factory=Statistics)
    balance: SkewMonitor = field(default_factory=SkewMonitor)
    placement: Placement | None = None
    plan: Join | None = None
    # What was let go for memory, as long as its rows could still have joined.
    gone: tuple[SliceSummary, ...] = ()

    @property
    def entries(self) -> tuple[SliceEntry, ...]:
        """The slices of all partitions."""
        return tuple(entry for part in self.parts.values() for entry in part.slices)

    @property
    def files(self) -> frozenset[str]:
        """The slice files it names."""
        return frozenset(entry.file for entry in self.entries)

    def sizes(self) -> dict[str, StateSize]:
        """How much each state holds, over all partitions."""
        found: dict[str, StateSize] = {}
        for entry in self.entries:
            so_far = found.get(entry.node, StateSize(0, 0, 0))
            found[entry.node] = StateSize(
                so_far.rows + entry.rows, so_far.bytes + entry.bytes, so_far.slices + 1
            )
        return found

    def to_json(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "batch": self.batch,
            "watermark": self.watermark,
            "newest": dict(self.newest),
            "parts": {str(number): part.to_json() for number, part in self.parts.items()},
            "recall": self.recall.to_json(),
            "statistics": self.statistics.to_json(),
            "balance": self.balance.to_json(),
            "placement": None if self.placement is None else self.placement.to_json(),
            "plan": None if self.plan is None else tree_to_json(self.plan),
            "gone": [list(astuple(one)) for one in self.gone],
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Manifest:
        """The manifest of `to_json`."""
        parts = {int(number): PartitionState.from_json(part) for number, part in found["parts"].items()}
        return Manifest(
            batch=found["batch"],
            watermark=found["watermark"],
            newest=found["newest"],
            parts=parts,
            recall=Recall.from_json(found["recall"]),
            statistics=Statistics.from_json(found["statistics"]),
            balance=SkewMonitor.from_json(found["balance"]),
            placement=_placement(found["placement"]),
            plan=None if found["plan"] is None else plan_from_json(found["plan"]),
            gone=tuple(SliceSummary(*one) for one in found["gone"]),
        )


class Ledger:
    """The JSON files of a checkpoint, each sealed with a checksum."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def manifest_before(self, batch: int) -> Manifest:
        """The manifest with the largest number below a batch; an empty one if there is none."""
        numbers = [number for number in self._numbers("manifests") if number < batch]
        if not numbers:
            return Manifest()
        found = self._read(f"manifests/{max(numbers)}.json")
        return Manifest() if found is None else Manifest.from_json(found)

    def last(self) -> Manifest:
        """The manifest of the last batch; an empty one before the first."""
        return self.manifest_before(1 + max(self._numbers("manifests"), default=-1))

    def write_manifest(self, manifest: Manifest) -> None:
        """Commit a batch."""
        self._write(f"manifests/{manifest.batch}.json", manifest.to_json())

    def decision(self, batch: int) -> tuple[Decision, int] | None:
        """What was decided for a batch, and how often it was tried; None if nothing was."""
        found = self._read(f"decisions/{batch}.json")
        return None if found is None else (_decision_from_json(found), found["attempt"])

    def write_decision(self, batch: int, decision: Decision, attempt: int) -> None:
        """Fix what a batch will do, before it does anything."""
        self._write(f"decisions/{batch}.json", {**_decision_to_json(decision), "attempt": attempt})

    def forget_before(self, batch: int) -> None:
        """Remove the decisions and manifests of older batches."""
        for kind in ("decisions", "manifests"):
            for number in self._numbers(kind):
                if number < batch:
                    self._folder.delete(f"{kind}/{number}.json")

    def forget_unfinished(self) -> None:
        """Remove what a driver was writing when it was killed."""
        for kind in ("decisions", "manifests"):
            for name in self._folder.names(kind):
                if not name.endswith((".json", ".crc")):
                    self._folder.delete(f"{kind}/{name}")

    def check_job(self, job: Mapping[str, Any]) -> None:
        """Remember what shapes the query, or refuse a query of another shape."""
        known = self._read("job.json")
        if known is None:
            self._write("job.json", dict(job))
            return
        # Rows that are shared find partners wherever these lie, but none of them twice.
        is_open = known["spread"] in SHARED or known.get("partitions") == 1
        for what, value in job.items():
            # Another probing order finds the same results in the same state.
            alike = what == "tree" or (what == "spread" and value in SHARED and is_open)
            if not alike and known.get(what) != value:
                old, new = _brief(known.get(what), value), _brief(value, known.get(what))
                raise ChangedQueryError(
                    f"the checkpoint {self._folder.uri} belongs to a query with another {what}: "
                    f"it has {old}, this one has {new}; "
                    "start the changed query with a new checkpointLocation"
                )

    def plan(self) -> Join | None:
        """The plan that the query here was first started with; None before that."""
        known = self._read("job.json")
        return None if known is None else plan_from_json(known["tree"])

    def spread(self) -> str | None:
        """The spread by which the state here was shared; None if rows lie where a key or a segment says."""
        known = self._read("job.json")
        found = None if known is None else known["spread"]
        return found if found in SHARED else None

    def write_spread(self, spread: str) -> None:
        """From now on the state is shared, and it does not matter how many partitions there are."""
        known = self._read("job.json") or {}
        self._write("job.json", {**{k: v for k, v in known.items() if k != "partitions"}, "spread": spread})

    def _numbers(self, kind: str) -> list[int]:
        names = [name.removesuffix(".json") for name in self._folder.names(kind) if name.endswith(".json")]
        return sorted(int(name) for name in names if name.isdigit())

    def _read(self, name: str) -> dict[str, Any] | None:
        data = self._folder.read(name)
        if data is None:
            return None
        try:
            sealed = json.loads(data)
            body: dict[str, Any] = json.loads(sealed["body"])
            good = zlib.crc32(sealed["body"].encode()) == sealed["checksum"]
        except (ValueError, KeyError, TypeError):
            good = False
        if not good:
            raise DamagedStateError(
                f"{self._folder.uri}/{name} is damaged; restore it, or start anew with another checkpoint"
            )
        return body

    def _write(self, name: str, body: dict[str, Any]) -> None:
        text = json.dumps(body)
        sealed = {"checksum": zlib.crc32(text.encode()), "body": text}
        self._folder.write(name, json.dumps(sealed).encode())


def job_of(query: Query, plan: Join, partitions: int, spread: str) -> dict[str, Any]:
    """What shapes a query's state."""
    return {
        "version": VERSION,
        "streams": {
            s.name: {f.name: str(f.type) for f in s.schema} | {"time column": s.time} for s in query.streams
        },
        "windows": {n: str(w) for n, w in zip(query.names, query.windows, strict=True)},
        "query": describe(replace(query, budget=None, basic=None)),
        "plan": str(plan),
        "tree": tree_to_json(plan),
        **({"join windows": [str(n.window) for n in plan.inner()]} if is_composed(plan) else {}),
        "spread": spread,
        **({} if spread in SHARED else {"partitions": partitions}),
    }


def _brief(mine: object, other: object) -> str:
    """Only where two descriptions differ."""
    if isinstance(mine, Mapping) and isinstance(other, Mapping):
        return str({key: value for key, value in mine.items() if other.get(key) != value})
    if isinstance(mine, str) and isinstance(other, str) and "\n" in mine:
        known = set(other.splitlines())
        return "'" + "; ".join(line.strip() for line in mine.splitlines() if line not in known) + "'"
    return repr(mine)


def _decision_to_json(decision: Decision) -> dict[str, Any]:
    return {
        "plan": tree_to_json(decision.plan),
        "driver_order": order if isinstance(order := decision.driver_order, str) else list(order),
        "clock": decision.clock,
        "idle": list(decision.idle),
        "candidates": decision.candidates,
        "allowance": _allowance_to_json(decision.allowance),
        "selectivities": [[h.driver, h.node, h.partner, s] for h, s in decision.selectivities.items()],
        "gains": dict(decision.gains),
        "placement": None if decision.placement is None else decision.placement.to_json(),
        "reason": decision.reason,
        "meanwhile": _allowance_to_json(decision.meanwhile),
        "effort": decision.effort,
    }


def _decision_from_json(found: Mapping[str, Any]) -> Decision:
    return Decision(
        plan=plan_from_json(found["plan"]),
        driver_order=_driver_order(found["driver_order"]),
        clock=found["clock"],
        idle=tuple(found["idle"]),
        candidates=found["candidates"],
        allowance=_allowance_from_json(found["allowance"]),
        selectivities={Hop(*hop): share for *hop, share in found["selectivities"]},
        gains=found["gains"],
        placement=_placement(found["placement"]),
        reason=found["reason"],
        meanwhile=_allowance_from_json(found["meanwhile"]),
        effort=found["effort"],
    )


def _placement(found: dict[str, Any] | None) -> Placement | None:
    return None if found is None else Placement.from_json(found)


def _driver_order(found: Any) -> DriverOrder:
    """A policy's name, which the decision checks, or a list."""
    return found if isinstance(found, str) else tuple(found)  # type: ignore[return-value]


def _allowance_to_json(allowance: Allowance | None) -> dict[str, Any] | None:
    if allowance is None:
        return None
    probes = [[hop.driver, hop.node, hop.partner, share] for hop, share in allowance.probes.items()]
    ages = [
        [hop.driver, hop.node, hop.partner, found.every, sorted(found.kept)]
        for hop, found in allowance.ages.items()
    ]
    return {
        "probes": probes,
        "choose": allowance.choose,
        "sample": allowance.sample,
        "ages": ages,
        "drop": dict(allowance.drop),
        "forget": allowance.forget,
    }


def _allowance_from_json(found: Mapping[str, Any] | None) -> Allowance | None:
    if found is None:
        return None
    probes = {Hop(driver, node, partner): share for driver, node, partner, share in found["probes"]}
    ages = {
        Hop(driver, node, partner): Ages(every, frozenset(kept))
        for driver, node, partner, every, kept in found["ages"]
    }
    return Allowance(probes, found["choose"], found["sample"], ages, found["drop"], found["forget"])
