"""A disk as processes see it, and what it may show after a power cut.

    put     a file appears with its content    a cut shows it, or what was there before, or a torn file
    move    a rename                           a cut shows either name; torn if the data was not synced
    sync    what was written is on the disk    a cut shows the content

Every name keeps or loses its changes independently of the others: a file system shows fewer states than that,
so what holds here holds on any.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import product
from typing import NamedTuple, TypeAlias

Content: TypeAlias = Hashable
ABSENT, TORN = "absent", "torn"


class Name(NamedTuple):
    """The name of a file: its kind, and the numbers in it."""

    kind: str
    batch: int = -1
    epoch: int = -1
    partition: int = -1

    def __str__(self) -> str:
        return " ".join([self.kind, *(str(number) for number in self[1:] if number >= 0)])


class _File(NamedTuple):
    """What processes see under a name, and what else a cut may show."""

    content: Content
    others: frozenset[Content] = frozenset()


_GONE = _File(ABSENT)


class Disk:
    """All files; every change returns another disk."""

    __slots__ = ("_hash", "files")

    def __init__(self, files: Mapping[Name, _File] | None = None) -> None:
        self.files = files or {}
        self._hash = hash(frozenset(self.files.items()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Disk) and self._hash == other._hash and self.files == other.files

    def read(self, name: Name) -> Content:
        """What processes see under a name: the content, `ABSENT` or `TORN`."""
        return self.files.get(name, _GONE).content

    def list(self, kind: str) -> dict[Name, Content]:
        """The files of a kind that processes see."""
        return {
            name: file.content
            for name, file in self.files.items()
            if name.kind == kind and file.content != ABSENT
        }

    def put(self, name: Name, content: Content, is_synced: bool = False) -> Disk:
        """Let a file appear; `is_synced` says that its data was synced before it got its name."""
        before = self.files.get(name, _GONE)
        others = {before.content, *before.others} | (set() if is_synced else {TORN})
        return self._with({name: _File(content, frozenset(others - {content}))})

    def delete(self, name: Name) -> Disk:
        """Remove a file."""
        before = self.files.get(name, _GONE)
        return self._with({name: _File(ABSENT, (before.others | {before.content}) - {ABSENT})})

    def move(self, source: Name, target: Name) -> Disk:
        """Rename a file, in place of one that has the target's name."""
        moved = self.files.get(source, _GONE)
        return self.put(target, moved.content, is_synced=TORN not in moved.others).delete(source)

    def sync(self, *kinds: str) -> Disk:
        """Bring all files of some kinds to the disk as processes see them."""
        unsynced = ((name, file) for name, file in self.files.items() if name.kind in kinds and file.others)
        return self._with({name: _File(file.content) for name, file in unsynced})

    def cut(self) -> Iterator[Disk]:
        """Yield every disk that may be there after a power cut."""
        kept = {name: file for name, file in self.files.items() if not file.others}
        unsure = {name: (file.content, *file.others) for name, file in self.files.items() if file.others}
        for contents in product(*unsure.values()):
            shown = {name: _File(c) for name, c in zip(unsure, contents, strict=True) if c != ABSENT}
            yield Disk({**kept, **shown})

    def _with(self, changed: Mapping[Name, _File]) -> Disk:
        files = {**self.files, **changed}
        for name, file in changed.items():
            if file == _GONE:
                del files[name]
        return Disk(files)
