"""Join trees as text: what is shown can be read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir import QueryError
from weir.plan.tree import Join
from weir.plan.tree_text import parse_tree

from .graphs import trees


@given(st.sampled_from([tree for tree in trees(("orders", "b_2", "ç", "d")) if isinstance(tree, Join)]))
def test_a_tree_is_read_as_it_is_shown(tree: Join) -> None:
    assert parse_tree(str(tree)) == tree
    assert parse_tree(f" {str(tree).replace(' ', ' , ')} ") == tree


@pytest.mark.parametrize("text", ["", "a", "(a b", "(a b))", "(a b) c", "((a b) `c)", "a b"])
def test_what_is_no_tree_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="is not a join tree, like"):
        parse_tree(text)


def test_a_join_of_one_is_refused() -> None:
    with pytest.raises(QueryError, match="at least two inputs; got 1"):
        parse_tree("((a) b)")
