"""Which slices may be deleted: those that no manifest of the last few batches names."""

from __future__ import annotations

from weir.runtime.manifest import Manifest
from weir.spark.filesystem import Folder
from weir.spark.ledger import Ledger

SWEEP_EVERY = 50


class Vacuum:
    """The files that the manifests of the last batches name, and what becomes of all others."""

    def __init__(self, folder: Folder, ledger: Ledger, retained: int) -> None:
        self._folder, self._ledger, self._retained = folder, ledger, retained
        self._kept: dict[int, frozenset[str]] = {}

    @property
    def is_new(self) -> bool:
        """True until the first batch since the start."""
        return not self._kept

    def keep(self, manifest: Manifest) -> None:
        """Keep what the manifest of a committed batch names."""
        self._kept[manifest.batch] = manifest.files

    def collect(self, before: Manifest, batch: int) -> None:
        """Forget what no manifest of the last few batches names; called when a later batch has begun."""
        keep_from = before.batch - self._retained + 1
        if self.is_new:
            self.keep(before)
            named = self._named_since(keep_from, before)
            for name in self._folder.names("slices"):
                if name not in named:
                    self._folder.delete(f"slices/{name}")
            self._ledger.forget_unfinished()
        old = [number for number in self._kept if number < keep_from]
        gone = frozenset().union(*(self._kept.pop(number) for number in old))
        for name in gone - frozenset().union(*self._kept.values()):
            self._folder.delete(f"slices/{name}")
        if old or batch % SWEEP_EVERY == 0:
            self._ledger.forget_before(keep_from)

    def _named_since(self, first: int, newest: Manifest) -> frozenset[str]:
        """The files that the retained manifests name, after a restart; their numbers are kept with them."""
        manifest = newest
        while manifest.batch >= max(first, 0):
            self.keep(manifest)
            manifest = self._ledger.manifest_before(manifest.batch)
        return frozenset().union(*self._kept.values())
