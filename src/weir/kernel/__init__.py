"""The join itself."""

from weir.kernel.batch import Work, build, probe
from weir.kernel.decision import Decision
from weir.kernel.ingest import Ingested, ingest
from weir.kernel.migration_state import MigrationState, StateBuild
from weir.kernel.multi_stage_probe import Parcel, Relay
from weir.kernel.output import result_schema
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import PhysicalPlan, compile_plan
from weir.kernel.plan_migration import (
    PhysicalPlans,
    PreparedPlan,
    answering,
    as_it_stands,
    effort,
    effort_allowed,
    ready,
)
from weir.kernel.row_ids import partial_at, places, together
from weir.kernel.slice import Slice
from weir.kernel.state import State, commit, expire, is_dead, tidy, watermark_after
from weir.kernel.state_schema import stored_schema

__all__ = [
    "Decision",
    "Ingested",
    "MigrationState",
    "Parcel",
    "Partial",
    "PhysicalPlan",
    "PhysicalPlans",
    "PreparedPlan",
    "Relay",
    "Slice",
    "State",
    "StateBuild",
    "Work",
    "answering",
    "as_it_stands",
    "build",
    "commit",
    "compile_plan",
    "effort",
    "effort_allowed",
    "expire",
    "ingest",
    "is_dead",
    "partial_at",
    "places",
    "probe",
    "ready",
    "result_schema",
    "stored_schema",
    "tidy",
    "together",
    "watermark_after",
]
