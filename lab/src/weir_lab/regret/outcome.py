"""What a scenario came to: weir's batches, those of all fixed decisions, and the regret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir_lab.regret.play import split_phases
from weir_lab.regret.record import Record
from weir_lab.regret.rivals import find_best
from weir_lab.regret.scenarios import Scenario

WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Regret:
    """Weir's results over those of the best fixed decision, in the steady part of a phase or in the whole."""

    scenario: str
    machine: str
    phase: str
    results: int
    best: int
    exact: int
    decision: str

    @property
    def ratio(self) -> float:
        """One and more if weir found as much as the best fixed decision."""
        return self.results / self.best if self.best else 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One scenario on one machine; without fixed decisions if none was tried."""

    scenario: Scenario
    ours: Sequence[Record]
    fixed: Mapping[str, Sequence[Record]]

    @property
    def machine(self) -> str:
        """Where it ran."""
        return self.ours[0].machine

    @property
    def steady(self) -> Mapping[str, Sequence[Record]]:
        """Weir's batches of each phase's steady part."""
        return split_phases(self.scenario, self.ours)

    def regrets(self) -> list[Regret]:
        """The regret in every steady phase and in the whole, where a fixed decision keeps the budget."""
        parts = [*self.steady, WHOLE]
        return [regret for part in parts if (regret := self._regret(part)) is not None]

    def best_of(self, phase: str, kinds: Sequence[str]) -> int | None:
        """The most results of fixed decisions of some kinds, in the steady part of a phase, in the budget."""
        runs = {n: records for n, records in self.fixed.items() if any(f" {kind} " in n for kind in kinds)}
        best = find_best(runs, lambda each: each.phase == phase and each.is_steady)
        return None if best is None else best[1]

    def _regret(self, part: str) -> Regret | None:
        def judged(each: Record) -> bool:
            return part == WHOLE or (each.phase == part and each.is_steady)

        best = find_best(self.fixed, judged)
        if best is None:
            return None
        own = [each for each in self.ours if judged(each)]
        results, exact = sum(each.results for each in own), sum(each.exact for each in own)
        return Regret(self.scenario.name, self.machine, part, results, best[1], exact, best[0])
