"""An aim of an experiment: what it should show, and what it measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Aim:
    """A claim, what the paper says of it, what we measured, whether that reaches it, and why it differs."""

    what: str
    paper: str
    measured: str
    reached: bool
    why: str = ""
