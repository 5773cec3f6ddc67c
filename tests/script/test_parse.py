"""Job scripts: what they mean, and how a mistake is told."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import weir
from weir.errors import QueryError
from weir.local.join import LocalJoin
from weir.order.policies import POLICIES
from weir.script.parse import IntoClause, Script, StreamSource, parse_script
from weir.script.run import open_join
from weir.shed.strategies import STRATEGIES

ORDERS = (
    "CREATE STREAM orders (ts TIMESTAMP, id INT) USING json OPTIONS (path 'in/orders') TIMESTAMP BY ts;\n"
)
PAID = "CREATE STREAM paid (ts TIMESTAMP, id INT) USING json OPTIONS (path 'in/paid') TIMESTAMP BY ts;\n"
SELECT = "SELECT o.id FROM orders o, paid p WHERE o.id = p.id WINDOW 10 MINUTES\n"
CLAUSES = (
    "expected OPTIONS, BUDGET, PLAN, SHED, BASIC WINDOW, DRIVER ORDER, SPREAD, ADAPT, IDLE, AHEAD, "
    "TRIGGER or ;"
)


def stream(text: str) -> StreamSource:
    return parse_script(f"{text};\n{ORDERS}{PAID}{SELECT} INTO noop").sources[0]


def into(text: str) -> IntoClause:
    return parse_script(f"{ORDERS}{PAID}{SELECT} INTO {text}").sink


def refusal(text: str) -> str:
    with pytest.raises(QueryError) as refused:
        parse_script(text)
    return str(refused.value)


class TestStreams:
    def test_all_clauses(self) -> None:
        source = stream(
            """-- the first one
            create stream `my trades` (ts TIMESTAMP, v ARRAY<ARRAY<INT>>, s STRUCT<a: DECIMAL(9,2), b: INT>)
            using org.example.Source options (path 'in/x', maxFilesPerTrigger 1, header = TRUE,
                                             kafka.group.id "g;1", 'odd key' -2.5) -- with a comment; here
            timestamp by TS lateness 1 minute 30 seconds"""
        )
        assert source == StreamSource(
            name="my trades",
            columns="ts TIMESTAMP, v ARRAY<ARRAY<INT>>, s STRUCT<a: DECIMAL(9,2), b: INT>",
            format="org.example.Source",
            options={
                "path": "in/x",
                "maxFilesPerTrigger": "1",
                "header": "TRUE",
                "kafka.group.id": "g;1",
                "odd key": "-2.5",
            },
            time="TS",
            late=90_000_000,
            line=2,
        )

    def test_the_source_may_know_its_own_columns(self) -> None:
        source = stream("CREATE STREAM ticks USING rate TIMESTAMP BY timestamp")
        assert (source.columns, source.options, source.late) == (None, {}, 0)

    @pytest.mark.parametrize("late", ["5 SECONDS", "'5 seconds'", "INTERVAL 5 SECONDS", "5s"])
    def test_an_interval_is_written_as_anywhere_else(self, late: str) -> None:
        assert stream(f"CREATE STREAM s USING rate TIMESTAMP BY timestamp LATENESS {late}").late == 5_000_000


class TestInto:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("parquet 'out/dir'", IntoClause("parquet", {"path": "out/dir"})),
            ("noop", IntoClause("noop")),
            ("csv OPTIONS (path 'out', header true)", IntoClause("csv", {"path": "out", "header": "true"})),
            (
                "parquet 'out' OPTIONS (checkpointLocation 'state') TRIGGER 500 ms;",
                IntoClause("parquet", {"path": "out", "checkpointLocation": "state"}, 500_000),
            ),
            (
                "noop BUDGET (cpu 0.5, memory '1g') ADAPT (gain 0.1, calibrate 5) TRIGGER 1 s",
                IntoClause("noop", {}, 1_000_000, weir.Budget(0.5, "1g"), weir.Adapt(gain=0.1, calibrate=5)),
            ),
            ("noop BUDGET (cpu 0.5) ADAPT OFF", IntoClause("noop", {}, None, weir.Budget(0.5), False)),
            (
                "noop IDLE '10 minutes' AHEAD 2 HOURS 5 SECONDS TRIGGER 1 s",
                IntoClause(
                    "noop",
                    trigger=1_000_000,
                    arguments={"idle": timedelta(minutes=10), "ahead": timedelta(hours=2, seconds=5)},
                ),
            ),
            ("noop AHEAD OFF", IntoClause("noop", arguments={"ahead": None})),
            (
                "noop TRIGGER 1 s SPREAD psp BASIC WINDOW 2 s DRIVER ORDER Round-Robin SHED 'random-drop'",
                IntoClause(
                    "noop",
                    trigger=1_000_000,
                    arguments={
                        "spread": "psp",
                        "basic": timedelta(seconds=2),
                        "driver_order": "round-robin",
                        "shed": "random-drop",
                    },
                ),
            ),
            ("noop DRIVER ORDER (p, o)", IntoClause("noop", arguments={"driver_order": ["p", "o"]})),
            ("noop PLAN bjtree", IntoClause("noop", arguments={"plan": "bjtree"})),
            (
                "noop PLAN ((`a` b) c, d) ADAPT OFF OPTIONS (path 'x')",
                IntoClause(
                    "noop",
                    {"path": "x"},
                    adapt=False,
                    arguments={"plan": weir.plan.join(weir.plan.join("a", "b"), "c", "d")},
                ),
            ),
        ],
    )
    def test_forms(self, text: str, expected: IntoClause) -> None:
        assert into(text) == expected

    @pytest.mark.parametrize("shed", ["auto", *STRATEGIES])
    def test_every_strategy_has_a_name(self, shed: str) -> None:
        assert into(f"noop SHED {shed.upper()}").arguments == {"shed": shed}

    @pytest.mark.parametrize("policy", POLICIES)
    def test_every_driver_policy_has_a_name(self, policy: str) -> None:
        assert into(f"noop DRIVER ORDER {policy} TRIGGER 1 s").arguments == {"driver_order": policy}

    def test_a_column_may_be_called_into(self) -> None:
        text = "SELECT o.into, o.`into` AS x FROM orders o, paid p WHERE o.id = p.id WINDOW 1 DAY INTO noop"
        assert parse_script(ORDERS + PAID + text).select.endswith("WINDOW 1 DAY")


class TestSelect:
    def test_streams_are_found_whatever_their_case_and_one_may_be_read_twice(self) -> None:
        job: Script = parse_script(
            f"{ORDERS}{PAID}SELECT a.id FROM Orders a, ORDERS b WHERE a.id = b.id WINDOW 1 HOUR INTO noop"
        )
        assert [(source.name, alias) for source, alias in job.tables] == [("orders", "a"), ("orders", "b")]

    def test_statements_may_come_in_any_order(self) -> None:
        assert len(parse_script(f"{SELECT} INTO noop;\n{PAID}{ORDERS}").tables) == 2

    def test_windows_and_freshness_stay_in_the_select(self) -> None:
        text = SELECT.strip() + " FRESHNESS o 12 MINUTES INTO noop"
        assert parse_script(ORDERS + PAID + text).select.strip() == text.removesuffix(" INTO noop")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1: a script has one SELECT ... INTO statement; this one has 0"),
        (
            ORDERS + PAID + f"{SELECT} INTO noop;\n{SELECT} INTO noop",
            "line 5: a script has one SELECT ... INTO statement; this one has 2",
        ),
        (ORDERS + PAID, "line 2: a script has one SELECT ... INTO statement; this one has 0"),
        (ORDERS + "\nSELECT 'a", "line 3: a quote ' is left open"),
        (
            ORDERS + "\n\n/* SELECT 'a'",
            "line 4: the script cannot be read from here on; is a comment /* left",
        ),
        (
            "CREATE STREAM x USING y TIMESTAMP BY ts\nLATENESS 300000000 WEEKS",
            "line 2: '300000000 WEEKS' is too long; it must be shorter than",
        ),
        (ORDERS + "\nDROP STREAM orders", "line 3: expected CREATE STREAM or SELECT, but found 'DROP'"),
        (ORDERS + "CREATE TABLE x", "line 2: expected CREATE STREAM, but found 'TABLE'"),
        (ORDERS + ORDERS, "line 2: stream 'orders' is created twice"),
        ("CREATE STREAM 'x' USING rate", "line 1: expected the name of a stream, but found ''x''"),
        ("CREATE STREAM x (a INT", "line 1: this ( is never closed, but found '('"),
        (
            "CREATE STREAM x (a INT,\n, b INT) USING y",
            "line 2: expected a column's name and its type, but found ','",
        ),
        (
            "CREATE STREAM x (a INT,\nb) USING y",
            "line 2: expected a column's name and its type",
        ),
        ("CREATE STREAM x (a INT, A INT) USING y", "line 1: column 'A' is given twice"),
        ("CREATE STREAM x\n(a INT) TIMESTAMP BY a", "line 2: expected USING, but found 'TIMESTAMP'"),
        ("CREATE STREAM x (a INT)\nUSING", "line 2: expected a format, like parquet, but the statement ends"),
        (
            "CREATE STREAM x USING y OPTIONS (\n  a 'b' c)",
            "line 2: expected , or ) after the value of 'a'",
        ),
        (
            "CREATE STREAM x USING y OPTIONS (\n  a b)",
            "line 2: the value of option 'a' is in quotes, a number, true or false",
        ),
        ("CREATE STREAM x USING y OPTIONS (a 1, a 2)", "line 1: option 'a' is given twice"),
        (
            "CREATE STREAM x (ts TIMESTAMP, id INT) USING y\nTIMESTAMP BY tss",
            "line 2: unknown column 'tss' in stream 'x'; did you mean 'ts'? Known: 'ts', 'id'",
        ),
        ("CREATE STREAM x USING y TIMESTAMP BY ts\nLATE 5 SECONDS", "line 2: expected RATE, LATENESS or ;"),
        ("CREATE STREAM x USING y TIMESTAMP BY ts\nLATENESS", "line 2: expected a length like 5 SECONDS"),
        (
            "CREATE STREAM x USING y TIMESTAMP BY ts\nLATENESS 5 parsecs",
            "line 2: unknown unit 'parsecs'",
        ),
        ("CREATE STREAM x USING y TIMESTAMP BY ts\nLATENESS -5 s", "line 2: '-5 s' is negative"),
        (ORDERS + PAID + SELECT, "line 3: the SELECT has no INTO; say where the results go"),
        (
            ORDERS + PAID + "\n\n" + SELECT + " INTO parquet 'a' OPTIONS (path 'b')",
            "line 6: the path is given twice, after INTO and in OPTIONS",
        ),
        (
            ORDERS + PAID + SELECT + " INTO parquet 'a' 'b'",
            f"line 4: {CLAUSES}, but found ''b''",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop ADAPT (gian 0.1)",
            "line 4: unknown setting 'gian' in ADAPT; did you mean 'gain'?",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop ADAPT (calibrate 2.5)",
            "line 4: calibrate= of weir.Adapt is a whole number of batches",
        ),
        (ORDERS + PAID + SELECT + " INTO noop ADAPT ON", "line 4: expected OFF or (, but found 'ON'"),
        (
            ORDERS + PAID + SELECT + " INTO noop ADAPT (gain 'x')",
            "line 4: gain of ADAPT is a number, like 0.05; got 'x'",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop ADAPT OFF BUDGTE (cpu 1)",
            f"line 4: {CLAUSES}, but found 'BUDGTE'; did you mean 'BUDGET'?",
        ),
        (ORDERS + PAID + SELECT + " INTO noop SHED thin\nSHED grepp", "line 5: SHED is given twice"),
        (
            ORDERS + PAID + SELECT + " INTO noop SHED harvset",
            "line 4: unknown strategy 'harvset' in SHED; did you mean 'harvest'? Known: 'auto', 'thin', ",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop SHED",
            "line 4: expected one of auto, thin, jaqpot, jaqpot-printed, grepp, harvest, random-drop after "
            "SHED, but the statement ends",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop DRIVER ORDER round-robbin",
            "line 4: unknown policy 'round-robbin' in DRIVER ORDER; did you mean 'round-robin'?",
        ),
        (ORDERS + PAID + SELECT + " INTO noop DRIVER ORDER (o p)", "line 4: expected , or ), but found 'p'"),
        (ORDERS + PAID + SELECT + " INTO noop DRIVER round-robin", f"line 4: {CLAUSES}, but found 'DRIVER'"),
        (
            ORDERS + PAID + SELECT + " INTO noop PLAN mjion",
            "line 4: unknown plan 'mjion' in PLAN; did you mean 'mjoin'? Known: 'auto', 'mjoin', 'bjtree'",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop PLAN (o)",
            "line 4: a join needs at least two inputs; got 1",
        ),
        (ORDERS + PAID + SELECT + " INTO noop PLAN (o p", "line 4: this ( is never closed, but found '('"),
        (
            ORDERS + PAID + SELECT + " INTO noop SPREAD hsah",
            "line 4: unknown spread 'hsah' in SPREAD; did you mean 'hash'? Known: 'auto', 'hash', 'share'",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop BASIC WINDOW 2 parsecs",
            "line 4: unknown unit 'parsecs'",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop BUDGET (mem '1g')",
            "line 4: unknown limit 'mem' in BUDGET; did you mean 'memory'? Known: 'cpu', 'memory'",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop BUDGET (cpu 1, CPU 1)",
            "line 4: limit 'CPU' is given twice in BUDGET",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop BUDGET (cpu '80%')",
            "line 4: a budget's cpu is a number, like 0.8; got '80%'",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop BUDGET (cpu -1)",
            "line 4: a budget's cpu is a share of the cores, a number above 0 and at most 1",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop BUDGET (cpu .5)",
            "line 4: expected a value in quotes, a number, true or false, but found '.'",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop BUDGET (memory '1.5g')",
            "line 4: a budget's memory: '1.5g' is not a size; expected a whole number",
        ),
        (
            ORDERS + PAID + SELECT + " INTO noop BUDGET ()",
            "line 4: expected a key and its value, but found ')'",
        ),
        (
            ORDERS + "\n" + SELECT + " INTO noop",
            "line 3, in the SELECT: unknown stream 'paid' in FROM; known: 'orders'",
        ),
        (
            ORDERS + PAID + "SELECT o.id\nFROM orders o, paid p\nWHERE o.id = = p.id\nWINDOW 1 DAY INTO noop",
            "line 3, in the SELECT: cannot read",
        ),
        (
            ORDERS + PAID + "SELECT max(id) FROM orders GROUP BY id INTO noop",
            "line 3, in the SELECT: ",
        ),
        (ORDERS + "SELECT 'x", "line 2: a quote ' is left open"),
    ],
)
def test_a_mistake_names_its_line(text: str, expected: str) -> None:
    assert refusal(text).startswith(expected)


def test_a_line_inside_the_select_is_counted_from_the_scripts_start() -> None:
    text = "SELECT o.id\nFROM orders o, paid p\nWHERE o.id = = p.id\nWINDOW 1 DAY INTO noop"
    assert re.search(r"near '=' \(line 5, ", refusal(ORDERS + PAID + text))


def test_parsing_needs_no_spark() -> None:
    code = "import sys; from weir.script.parse import parse_script; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "options", ["password SECRET", "password 'x' 'SECRET'", "password 'SECRET', user 'x"]
)
def test_a_mistake_tells_no_value_of_an_option(options: str) -> None:
    assert "SECRET" not in refusal(f"CREATE STREAM x USING y OPTIONS ({options}) TIMESTAMP BY ts")


def test_clauses_reach_the_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over schemas of this process instead of Spark's sources; SPREAD is for Spark alone."""
    schema = pa.schema({"ts": pa.timestamp("us"), "id": pa.int32()})
    monkeypatch.setattr("weir.script.run._open_source", lambda *given: schema)
    text = "noop PLAN (p o) DRIVER ORDER (p, o) BASIC WINDOW 30 SECONDS SHED harvest BUDGET (cpu 0.5)"
    join: Any = open_join(parse_script(f"{ORDERS}{PAID}{SELECT} INTO {text}"), None, None)
    assert isinstance(join, LocalJoin)
    assert str(join.planned.plan) == "(p o)" and join.planned.shed == "harvest"
    assert join.query.basic == 30_000_000
    query = join.start()
    query.process({})
    assert query.lastProgress["weir"]["decision"]["driverOrder"] == ["p", "o"]
