"""What the checkpoint says of each batch: the job, the decision before it, the manifest after it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weir.codec import from_json, to_json
from weir.kernel.decision import Decision
from weir.partition.placement import SHARED_SPREADS
from weir.plan.tree import Join, is_composed
from weir.query.describe import describe
from weir.query.model import Query
from weir.runtime.manifest import Manifest
from weir.spark.errors import ChangedQueryError, DamagedStateError
from weir.spark.filesystem import Folder

VERSION = 1


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
        return Manifest() if found is None else from_json(Manifest, found)

    def last(self) -> Manifest:
        """The manifest of the last batch; an empty one before the first."""
        return self.manifest_before(1 + max(self._numbers("manifests"), default=-1))

    def write_manifest(self, manifest: Manifest) -> None:
        """Commit a batch."""
        self._write(f"manifests/{manifest.batch}.json", to_json(manifest))

    def decision(self, batch: int) -> tuple[Decision, int] | None:
        """What was decided for a batch, and how often it was tried; None if nothing was."""
        found = self._read(f"decisions/{batch}.json")
        return None if found is None else (from_json(Decision, found["decision"]), found["attempt"])

    def write_decision(self, batch: int, decision: Decision, attempt: int) -> None:
        """Fix what a batch will do, before it does anything."""
        self._write(f"decisions/{batch}.json", {"decision": to_json(decision), "attempt": attempt})

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
        is_open = known["spread"] in SHARED_SPREADS or known.get("partitions") == 1
        for what, value in job.items():
            # Another probing order finds the same results in the same state.
            alike = what == "tree" or (what == "spread" and value in SHARED_SPREADS and is_open)
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
        return None if known is None else from_json(Join, known["tree"])

    def spread(self) -> str | None:
        """The spread by which the state here was shared; None if rows lie where a key or a segment says."""
        known = self._read("job.json")
        found = None if known is None else known["spread"]
        return found if found in SHARED_SPREADS else None

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
        "tree": to_json(plan),
        **({"join windows": [str(n.window) for n in plan.inner()]} if is_composed(plan) else {}),
        "spread": spread,
        **({} if spread in SHARED_SPREADS else {"partitions": partitions}),
    }


def _brief(mine: object, other: object) -> str:
    """Only where two descriptions differ."""
    if isinstance(mine, Mapping) and isinstance(other, Mapping):
        return str({key: value for key, value in mine.items() if other.get(key) != value})
    if isinstance(mine, str) and isinstance(other, str) and "\n" in mine:
        known = set(other.splitlines())
        return "'" + "; ".join(line.strip() for line in mine.splitlines() if line not in known) + "'"
    return repr(mine)
