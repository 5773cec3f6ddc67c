"""The join itself."""

from weir.kernel.batch import Work, build, probe
from weir.kernel.decision import Decision
from weir.kernel.ingest import Ingested, ingest
from weir.kernel.layout import stored_schema
from weir.kernel.migrate import Programs, Ready, answering, as_it_stands, effort, effort_allowed, ready
from weir.kernel.output import result_schema
from weir.kernel.partial import Partial
from weir.kernel.places import partial_at, places, together
from weir.kernel.program import Program, compile_plan
from weir.kernel.relay import Parcel, Relay
from weir.kernel.slice import Slice
from weir.kernel.standing import Building, Standing
from weir.kernel.state import State, commit, expire, is_dead, tidy, watermark_after

__all__ = [
    "Building",
    "Decision",
    "Ingested",
    "Parcel",
    "Partial",
    "Program",
    "Programs",
    "Ready",
    "Relay",
    "Slice",
    "Standing",
    "State",
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
