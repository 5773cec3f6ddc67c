"""No secret among options is in a file of a query, in its errors or in what is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import weir
from weir.errors import QueryError
from weir.script.parse import parse_script
from weir.script.run import explain_script, open_join
from weir.spark.errors import ChangedQueryError
from weir.spark.filesystem import LocalFolder
from weir.spark.redaction import keep_secrets, redact_options

from .streams import PAIR, expected, finish, pair_feed, read_bag

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SECRET = "correct horse"


class KilledError(Exception):
    """Stands for the death of a driver."""


def test_a_checkpoint_keeps_a_hash(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = pair_feed(tmp_path / "in", 1)
    checkpoint, out = tmp_path / "ckpt", tmp_path / "out"

    def start(password: str) -> Any:
        join = weir.join(**feed.frames(spark), **PAIR, partitions=2)
        writer = join.writeStream.format("json").option("Sink.Password", password).option("lineSep", "\n")
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        return finish(writer.start(str(out)))

    move, moved = LocalFolder.move, list[str]()

    def move_one(folder: LocalFolder, source: str, target: str) -> None:
        is_result = target.startswith("part-")
        if is_result and moved:
            raise KilledError
        moved.extend([target] if is_result else [])
        move(folder, source, target)

    with monkeypatch.context() as patched, pytest.raises(Exception, match="KilledError"):
        patched.setattr(LocalFolder, "move", move_one)
        start(SECRET)
    job = checkpoint / "weir/jobs/0001.json"
    assert job.stat().st_mode & 0o777 == 0o600
    target = json.loads(json.loads(job.read_text())["body"])["content"]["target"]
    assert target["options"] == {"lineSep": "\n"} and list(target["secrets"]) == ["Sink.Password"]
    # The batch had begun with another value, and the file that it published needs the others.
    with pytest.raises(ChangedQueryError, match=r"batch 0 .* option 'Sink\.Password'.* only a hash") as error:
        start("battery staple")
    assert SECRET not in str(error.value) and "battery" not in str(error.value)
    start(SECRET)
    assert read_bag(out, "json") == expected(feed.tables(), **PAIR)
    start("battery staple")  # with no batch begun, it may change
    written = [path for folder in (checkpoint, out) for path in folder.rglob("*") if path.is_file()]
    assert len(written) > 10
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]


SCRIPT = """
CREATE STREAM a (ts TIMESTAMP, k INT) USING {format} OPTIONS (path '/nowhere/{secret}', {key} '{value}')
    TIMESTAMP BY ts;
CREATE STREAM b (ts TIMESTAMP, k INT) USING json OPTIONS (path '/nowhere/b') TIMESTAMP BY ts;
SELECT a.k FROM a, b WHERE a.k = b.k WINDOW 1 MINUTE INTO jdbc OPTIONS (url 'jdbc:{value}', dbtable 't');
"""


def test_a_script_tells_no_secret(spark: SparkSession) -> None:
    given = {"secret": SECRET, "key": "api.token", "value": f"/nowhere/{SECRET}"}
    script = parse_script(SCRIPT.format(format="json", **given))
    with pytest.raises(QueryError, match=r"line 2, in stream 'a': .*does not exist.*\(redacted\)") as error:
        open_join(script, spark, 1)
    assert SECRET not in str(error.value)
    script = parse_script(SCRIPT.format(format="json", **{**given, "secret": "a"}))
    with pytest.raises(QueryError, match=r"line 5, in INTO: the jdbc sink .* No suitable driver") as error:
        explain_script(script, spark, "job", 1, mermaid=False)
    assert SECRET not in str(error.value)
    script = parse_script(
        SCRIPT.format(format="json", **{**given, "secret": "a", "value": f"derby:{SECRET}"})
    )
    text = explain_script(script, spark, "job", 1, mermaid=False)
    assert SECRET not in text
    assert "a: json path='/nowhere/a' api.token='*********(redacted)'" in text
    assert "jdbc url='*********(redacted)' dbtable='t'" in text


def test_patterns_are_those_of_the_session(spark: SparkSession) -> None:
    options = {"PIN": "0815", "accessKey": "k", "path": "p"}
    hidden = "*********(redacted)"
    assert redact_options(spark, options) == {**options, "accessKey": hidden}
    spark.conf.set("spark.sql.redaction.options.regex", "(?i)pin")
    try:
        assert redact_options(spark, options) == {"PIN": hidden, "accessKey": hidden, "path": "p"}
        with pytest.raises(QueryError) as error, keep_secrets(spark, options):
            spark.sql("SELECT nope AS `0815`")
        assert "0815" not in str(error.value) and "nope" in str(error.value)
    finally:
        spark.conf.unset("spark.sql.redaction.options.regex")
