"""Monitor, analyse and actuate on Spark: a controller that goes on where the checkpoint left it."""

from __future__ import annotations

from weir.adapt.analyse import PlanInForce, Recommendation
from weir.adapt.controller import Controller, Scope
from weir.adapt.describe_decision import describe_decision
from weir.adapt.observed import Observed
from weir.adapt.settings import Adapt
from weir.adapt.statistics import Statistics
from weir.kernel.decision import Decision
from weir.plan.tree import Join
from weir.query.model import Budget, Query
from weir.shed.allowance import Allowance
from weir.spark.filesystem import Folder
from weir.spark.history import History


class Adaptation:
    """What a query decides while it runs; a `budget` that is set counts from the next batch on."""

    def __init__(self, query: Query, settings: Adapt, scope: Scope, folder: Folder) -> None:
        self._query, self._settings, self._scope = query, settings, scope
        self._history = History(folder)
        self.budget = query.budget or Budget()
        self._controller: Controller | None = None

    @property
    def most_bytes(self) -> int | None:
        """What the state may take after the batch that runs."""
        return self._started().budget.bytes

    def start(self, plan: Join, allowance: Allowance | None, known: Statistics) -> None:
        """Go on with what ran before, and what was known then, if it is not going on already."""
        if self._controller is None:
            running = PlanInForce(plan, allowance)
            self._controller = Controller(
                self._query, running, self.budget, self._settings, self._scope, known
            )

    def decide(self) -> Recommendation | None:
        """What changes with the next batch; None if nothing does."""
        controller = self._started()
        controller.budget = self.budget
        return controller.decide()

    def refuse(self, plan: Join, allowance: Allowance | None) -> None:
        """What was decided cannot be done; that goes on."""
        self._started().refuse(plan, allowance)

    def record(self, batch: int, decision: Decision, verdict: Recommendation) -> None:
        """Write down what was decided for a batch."""
        predicted = {"recall": verdict.recall, "cpu": verdict.cpu, "memory": verdict.memory}
        found = {"predicted": predicted, "analysisSeconds": verdict.seconds}
        self._history.add(batch, {**describe_decision(decision), **found})

    def learn(self, seen: Observed) -> Statistics:
        """All that is known after a batch."""
        controller = self._started()
        controller.learn(seen)
        return controller.statistics

    def weigh(self) -> None:
        """Begin to analyse, if what was learned calls for it; for when the driver has nothing else to do."""
        self._started().weigh()

    def close(self) -> None:
        """Analyse no more."""
        if self._controller is not None:
            self._controller.close()

    def _started(self) -> Controller:
        assert self._controller is not None, "the first batch starts it"
        return self._controller
