"""Malformed and exotic SQL: parser and planner take it or refuse it with an error of their own, never otherwise.

``python -m tests.campaign.fuzz [CASES] [SEED]`` asks Spark's own analyser; the tests ask :func:`guessed_columns`.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from strandline.algebra.schema import Column, Schema
from strandline.engine.session import Engine
from strandline.errors import SqlError, StrandlineError
from strandline.sql.compile import compile_view
from strandline.sql.ddl import parse
from strandline.sql.relations import Analyser
from strandline.sql.statements import CreateView, ExplainCreate, Query
from tests.campaign.corpus.definitions import definitions
from tests.campaign.exotic import EXOTIC, enormous
from tests.campaign.relations import RELATIONS
from tests.campaign.tpch.following import queries


def mutated(chance: random.Random, texts: Sequence[str]) -> str:
    """One of *texts* with a few of its words cut, doubled, swapped, or taken from another one."""
    words = _words(chance.choice(texts))
    for _ in range(chance.choice([1, 1, 2, 3])):
        place = chance.randrange(len(words))
        other = chance.randrange(len(words))
        match chance.choice(["kin"] * 6 + ["cut", "double", "swap", "graft", "stop", "join", "letter"]):
            case "kin":
                _exchange(chance, words)
            case "cut":
                del words[place]
            case "double":
                words.insert(place, words[place])
            case "swap":
                words[place], words[other] = words[other], words[place]
            case "graft":
                foreign = _words(chance.choice(texts))
                start = chance.randrange(len(foreign))
                words[place : place + chance.randrange(4)] = foreign[start : start + chance.randrange(1, 8)]
            case "stop":
                words = words[: max(1, place)]
            case "join":
                words[place : place + 2] = ["".join(words[place : place + 2])]
            case _:
                words[place] = words[place][:-1] + chance.choice("'\"`()[]{},.;:*/-+<>=!|&%$#@\\\n\x00é名")
        if not words:
            return ""
    return " ".join(words)


_KIN = tuple(
    tuple(group.split("/"))
    for group in (
        "sum/count/avg/min/max/first/collect_list/stddev/rank/explode/grouping/upper/coalesce/rand/current_date",
        "a/b/k/d/t/x/xs/m/st/*/r.a/s.b/nope/count(*)/`a`/NULL",
        "r/s/bag/kinds/nest/läufe/r x/nope",
        "JOIN/LEFT JOIN/RIGHT JOIN/FULL JOIN/CROSS JOIN/LEFT SEMI JOIN/LEFT ANTI JOIN/NATURAL JOIN/JOIN LATERAL/, ",
        "=/</>/<=>/<>/IS/IN/LIKE/||/->",
        "AND/OR/AND NOT/OR NOT",
        "UNION/UNION ALL/INTERSECT/EXCEPT/EXCEPT ALL/MINUS",
        "WHERE/HAVING/GROUP BY/ORDER BY/LIMIT/QUALIFY/ON",
        "SELECT/SELECT DISTINCT/SELECT ALL/SELECT 1,/SELECT *,/(SELECT",
        "0/1/NULL/'x'/1.5/-1/DATE '2024-01-01'/(SELECT max(a) FROM l.s)/true",
        "EXISTS/NOT EXISTS/IN/a IN",
        "ROLLUP/CUBE/GROUPING SETS/ALL",
    )
)


def _exchange(chance: random.Random, words: list[str]) -> None:
    """A word becomes one that may stand in its place."""
    places = [(place, kin) for place, word in enumerate(words) for kin in _KIN if word in kin]
    if places:
        place, kin = chance.choice(places)
        words[place] = chance.choice(kin)


def _words(text: str) -> list[str]:
    spaced = text
    for mark in "(),.":
        spaced = spaced.replace(mark, f" {mark} ")
    return spaced.split()


def corpus() -> list[str]:
    """The texts that are mutated."""
    return [view.query for view in (*definitions(), *queries())]


def taken(text: str, analyse: Analyser) -> str:
    """What becomes of a text: the code of an error, ``incremental``, or the reason for a full refresh."""
    try:
        statement = parse(text)
        create = statement.create if isinstance(statement, ExplainCreate) else statement
        query = create.query if isinstance(create, CreateView) else create
        if not isinstance(query, Query):
            return "statement"
        compiled = compile_view("v", query, RELATIONS, analyse)
        return "incremental" if compiled.reason is None else compiled.reason.code
    except StrandlineError as error:
        return error.code


def guessed_columns(sql: str) -> Schema:
    """The columns of a query as sqlglot sees them: enough to lead the compiler on, and much faster than Spark."""
    try:
        tree = annotate_types(qualify(sqlglot.parse_one(sql, dialect="spark"), dialect="spark"))
        for both in tree.find_all(exp.SetOperation):
            if len(both.left.selects) != len(both.right.selects):
                raise ValueError("the sides of a set operation differ in width")
        selects = tree.selects  # type: ignore[attr-defined]
        found = tuple(
            Column(node.alias_or_name, (node.type.sql("spark") if node.type else "").lower()) for node in selects
        )
    except Exception as error:
        raise SqlError("SPARK_REJECTS", str(error)) from error
    return tuple(Column(c.name, c.type if c.type not in ("", "unknown", "null") else "int") for c in found)


def main(cases: int, seed: int) -> None:
    """Ask Spark about exotic, enormous and mutated texts."""
    engine = Engine(settings={"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-Xss16m"})
    began, chance, texts = time.monotonic(), random.Random(seed), corpus()
    outcomes: dict[str, int] = {}
    wrong: list[str] = []
    all_texts = [*EXOTIC, *enormous(), *(mutated(chance, texts) for _ in range(cases))]
    for number, text in enumerate(all_texts, 1):
        try:
            outcome = taken(text, engine.analyse)
        except Exception as error:
            outcome = f"!{type(error).__name__}"
            wrong.append(f"{type(error).__name__}: {str(error)[:300]}\n    {text[:500]!r}")
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if number % 100 == 0:
            print(f"{time.monotonic() - began:6.0f} s  {number} texts, {len(wrong)} crashes", flush=True)
    engine.close()
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items(), key=lambda item: -item[1])))
    print("\n".join(wrong))
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
