"""What a disk may show after a cut: synced files stay, others may be torn, renamed ones are never lost."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from weir_lab.attack.disk_states import File, draw_state, read_tree, sync_folder, write_tree

NAMES = st.sampled_from(["logs/1", "logs/2", "out/_part", "out/part", "weir/manifest"])
FILES = st.builds(File, st.integers(1, 6), st.binary(min_size=1, max_size=6))
TREES = st.dictionaries(NAMES, FILES, max_size=5).filter(
    lambda tree: len({file.inode for file in tree.values()}) == len(tree)
)


@given(TREES, TREES, st.integers(0, 1000))
def test_every_file_is_as_before_as_now_or_torn(
    synced: dict[str, File], now: dict[str, File], seed: int
) -> None:
    state = draw_state(synced, now, random.Random(seed))
    for name, data in state.items():
        before, after = synced.get(name), now.get(name)
        is_torn = after is not None and after.data.startswith(data)
        assert (before is not None and before.data == data) or is_torn
    for name, file in synced.items():
        if name in now and now[name].data == file.data:
            assert state[name] == file.data


@given(st.integers(0, 1000))
def test_a_synced_file_that_was_renamed_is_whole_under_one_name(seed: int) -> None:
    file = File(1, b"results")
    state = draw_state({"out/_part": file}, {"out/part": file}, random.Random(seed))
    assert state in ({"out/_part": b"results"}, {"out/part": b"results"})


def test_all_states_of_a_new_file_are_drawn() -> None:
    states = [draw_state({}, {"a": File(1, b"xy")}, random.Random(seed)) for seed in range(200)]
    assert {state.get("a") for state in states} == {None, b"", b"x", b"xy"}


def test_after_a_sync_of_a_folder_its_names_stay() -> None:
    synced = {"m/.1": File(1, b"manifest"), "out/a": File(2, b"old")}
    now = {"m/1": File(1, b"manifest"), "out/a": File(3, b"new")}
    after = sync_folder(synced, now, "m")
    assert after == {"m/1": File(1, b"manifest"), "out/a": File(2, b"old")}
    for seed in range(50):
        assert draw_state(after, now, random.Random(seed))["m/1"] == b"manifest"


def test_trees_are_read_and_written(tmp_path: Path) -> None:
    write_tree(tmp_path, ["a"], {"a/b/c": b"1", "a/d": b""})
    found = read_tree(tmp_path, ["a", "gone"])
    assert {name: file.data for name, file in found.items()} == {"a/b/c": b"1", "a/d": b""}
    write_tree(tmp_path, ["a"], {"a/d": b"2"})
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["d"]
