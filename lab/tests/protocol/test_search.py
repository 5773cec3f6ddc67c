"""The model of the commit protocol: nothing is lost or twice, and every safeguard is needed for that."""

from __future__ import annotations

import pytest

from weir.runtime.batch_events import PHASES
from weir_lab.protocol.disk import ABSENT, TORN, Disk, Name
from weir_lab.protocol.driver import SAFEGUARDS, STEPS
from weir_lab.protocol.search import QUICK, Size, find_fault, find_violation


def test_the_model_has_the_steps_of_the_code_in_their_order() -> None:
    assert [step for step in STEPS if step in PHASES] == list(PHASES)


@pytest.mark.parametrize("size", QUICK, ids=str)
def test_nothing_is_lost_or_twice(size: Size) -> None:
    finding = find_violation(size)
    assert finding.violation is None, finding.trace
    assert finding.states > 1_000


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_every_safeguard_is_needed(safeguard: str) -> None:
    assert find_fault(safeguard).violation is not None


def test_a_cut_may_undo_or_tear_what_is_not_synced() -> None:
    disk = Disk().put(Name("file", 1), "old").sync("file").put(Name("file", 1), "new")
    assert disk.read(Name("file", 1)) == "new"
    assert {shown.read(Name("file", 1)) for shown in disk.cut()} == {"old", "new", TORN}


def test_a_cut_shows_what_is_synced() -> None:
    disk = Disk().put(Name("file", 1), "new").sync("file")
    assert [shown.read(Name("file", 1)) for shown in disk.cut()] == ["new"]


def test_a_rename_of_synced_data_is_never_torn() -> None:
    disk = Disk().put(Name("hidden", 1), "data").sync("hidden").move(Name("hidden", 1), Name("file", 1))
    shown = {(after.read(Name("hidden", 1)), after.read(Name("file", 1))) for after in disk.cut()}
    assert shown == {("data", ABSENT), (ABSENT, "data"), ("data", "data"), (ABSENT, ABSENT)}
