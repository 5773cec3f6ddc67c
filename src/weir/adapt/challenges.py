"""Challenges: the decision in force and how well it does, the challenger on trial, and what is barred.

    in force ── begin ──▶ trial ──▶ won:  stays, until it finds less than what it has beaten
       ▲                       └──▶ lost ──┐
       └── what was in force before, and ◀─┘ its kind is barred

While states of another plan are being built, the one before it is active, and its batches judge nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from weir.adapt.trial import Base, Measured, Trial
from weir.plan.tree import Join

# A barred challenger may be tried again after this many windows; others wait for fewer, twice as many after
# each trial that is lost.
_BARRED_WINDOWS, _WAITING_WINDOWS = 10.0, 3.0
# What won is beaten if its recall falls below this share of what it had beaten.
_BEATEN_SHARE = 0.95
# A decision is judged by no fewer batches than this, and no more are remembered than that.
_FEWEST_BATCHES, _MOST_BATCHES = 3, 60
# Windows that count rows are taken to be full after this many batches.
_ROW_WINDOW_BATCHES = 10


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be in force from the next batch on, why, and what the model expects of it.

    `seconds` is the CPU time of the analysis behind it.
    """

    base: Base
    reason: str
    recall: float = 1.0
    cpu: float = 0.0
    memory: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A trial that was won or lost, or that was won once and by now finds less than what it had beaten."""

    verdict: Literal["won", "lost", "beaten"]
    trial: Trial


@dataclass(frozen=True, slots=True)
class Challenges:
    """The `base` is in force, or being migrated to; then the one `before` it is active.

    - `recent`: event seconds, recall and CPU over what was allowed, of the batches of the base in the last
      window, and of three at least; with the numbers it has now, it ran in the last `same` ones;
    - `trial` of the base, and the trial that it has `won`;
    - `following`: what was decided by the last batch;
    - `clock`: event seconds that the query has run, in so many `batches`;
    - `barred`: until when kinds of challengers may not be tried; none may before `wait_until`, which grows
      with the trials `lost` in a row.
    """

    base: Base
    before: Base | None = None
    recent: tuple[tuple[float, float, float], ...] = ()
    same: int = 0
    trial: Trial | None = None
    won: Trial | None = None
    following: Change | None = None
    clock: float = 0.0
    batches: int = 0
    barred: Mapping[str, float] = field(default_factory=dict)
    lost: int = 0
    wait_until: float = 0.0

    @property
    def active(self) -> Base:
        """The base whose plan runs."""
        return self.before or self.base

    @property
    def is_settled(self) -> bool:
        """True if the base runs, is not on trial, and stays."""
        return self.before is None and self.trial is None and self.following is None

    @property
    def standing(self) -> Measured:
        """How well the base does, with the numbers it has now or, if these are new, a little longer.

        Right after a trial that was won, that is how well it did there.
        """
        if self.won is not None and not self.is_measured:
            return self.won.measured
        return Measured.of(self.recent[-max(self.same, _FEWEST_BATCHES) :])

    def reset(self, base: Base, before: Base | None = None) -> Challenges:
        """Put a base in force for other reasons than a trial."""
        return replace(
            self, base=base, before=before, recent=(), same=0, trial=None, won=None, following=None
        )

    def adopt(self, base: Base) -> Challenges:
        """Put a base in force; a trial stays known if it is of that base, a won one also of other numbers."""
        before = None if base.plan == self.active.plan else self.active
        recent = self.recent if base.key == self.base.key else ()
        trial = self.trial if self.trial is not None and self.trial.challenger == base else None
        won = self.won if self.won is not None and self.won.challenger.key == base.key else None
        return replace(self.reset(base, before), recent=recent, trial=trial, won=won)

    def arrive(self, plan: Join) -> Challenges:
        """Note which plan was active in a batch."""
        return replace(self, before=None) if plan == self.base.plan else self

    def begin(self, change: Change, exact_share: float = 0.0) -> Challenges:
        """Try what a change puts in force; `exact_share` is that of the statistics."""
        trial = Trial(change.base, self.base, self.standing, exact_share=exact_share)
        return replace(self, trial=trial, following=change)

    def after(
        self, span: float, recall: float | None, ratio: float, window: float
    ) -> tuple[Challenges, Ended | None]:
        """Add a batch: its event seconds, its recall, and its CPU seconds over what it was allowed.

        `window` is the longest in event seconds, zero if all of them count rows.
        """
        now = replace(self, clock=self.clock + span, batches=self.batches + 1)
        length = now.trial_span(window)
        if self.before is not None or self.following is not None:
            return now, None
        if self.trial is not None:
            return now._try(self.trial.after(span, recall, ratio), length)
        if recall is None:  # nothing is known, as when a stream is silent
            return now, None
        recent = [*self.recent, (span, recall, ratio)][-_MOST_BATCHES:]
        while len(recent) > _FEWEST_BATCHES and sum(spans for spans, *_ in recent[1:]) >= length:
            del recent[0]
        now, won = replace(now, recent=tuple(recent), same=min(self.same + 1, len(recent))), self.won
        is_beaten = won is not None and now._is_beaten(won, length)
        return now, Ended("beaten", won) if won is not None and is_beaten else None

    def trial_span(self, window: float) -> float:
        """How many event seconds a trial takes: a window, or some batches where windows count rows."""
        return window or _ROW_WINDOW_BATCHES * self.clock / max(self.batches, 1)

    def may_try(self, window: float) -> bool:
        """True if a trial may begin: a window has passed, no lost trial waits, and the base is measured."""
        return self.clock >= self.trial_span(window) and self.is_measured and not self.is_waiting

    @property
    def is_measured(self) -> bool:
        """True if enough batches of the base are known to judge it."""
        return len(self.recent) >= _FEWEST_BATCHES

    def is_proven(self, window: float) -> bool:
        """True if the base has run for half a window with the numbers it has now."""
        is_measured = self.same >= _FEWEST_BATCHES
        return is_measured and self.standing.span >= self.trial_span(window) / 2

    @property
    def is_waiting(self) -> bool:
        """True if a trial was lost so lately that none may begin."""
        return self.clock < self.wait_until

    def pause(self, window: float) -> Challenges:
        """Try nothing for a window, and ask again then."""
        return replace(self, wait_until=self.clock + self.trial_span(window))

    def bar(self, kind: str, window: float) -> Challenges:
        """Bar a kind of challengers for some windows."""
        until = self.clock + _BARRED_WINDOWS * self.trial_span(window)
        return replace(self, barred={**self.barred, kind: until})

    @property
    def barred_kinds(self) -> frozenset[str]:
        """What may not be tried now."""
        return frozenset(kind for kind, until in self.barred.items() if until > self.clock)

    @property
    def is_due(self) -> bool:
        """True if a bar or a wait has ended since the last analysis."""
        return len(self.barred_kinds) < len(self.barred) or 0 < self.wait_until <= self.clock

    def lift_bars(self) -> Challenges:
        """Forget bars and waits that have ended, as an analysis begins that knows of it."""
        barred = {kind: until for kind, until in self.barred.items() if until > self.clock}
        return replace(self, barred=barred, wait_until=self.wait_until if self.is_waiting else 0.0)

    def _try(self, trial: Trial, length: float) -> tuple[Challenges, Ended | None]:
        is_won = trial.is_won(length)
        if is_won is None:
            return replace(self, trial=trial), None
        if is_won:
            return replace(self, trial=None, won=trial, lost=0), Ended("won", trial)
        wait_until = self.clock + _WAITING_WINDOWS * 2**self.lost * length
        ended = replace(self, trial=None, lost=self.lost + 1, wait_until=wait_until)
        return ended.bar(trial.before.name_change(trial.challenger), length), Ended("lost", trial)

    def _is_beaten(self, won: Trial, length: float) -> bool:
        return self.is_proven(length) and self.standing.mean < _BEATEN_SHARE * won.standing.mean
