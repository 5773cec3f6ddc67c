"""What an experiment was to show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Aim:
    """Something that was to be shown, what came out, and what the data tell of the difference."""

    what: str
    paper: str
    found: str
    reached: bool
    why: str = ""
