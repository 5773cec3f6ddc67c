"""Jobs as text: `CREATE STREAM` statements and one `SELECT ... INTO`, for `weir run` and `weir explain`."""

from weir.script.model import Into, Script, StreamSource
from weir.script.parse import parse_script
from weir.script.run import explanation, open_join, start

__all__ = ["Into", "Script", "StreamSource", "explanation", "open_join", "parse_script", "start"]
