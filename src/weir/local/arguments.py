"""Checks that `weir.local.query` shares with the arguments of a join."""

from weir.options import OnNullTime, check_allowance, check_budget

__all__ = ["OnNullTime", "check_allowance", "check_budget"]
