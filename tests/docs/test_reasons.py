"""Every code that a user can meet is documented, and no other."""

from __future__ import annotations

import ast
import re

from strandline.reasons import MEANINGS
from strandline.sources.postgres.faults import _ADVICE
from tests.docs.markdown import ROOT, section

PAGE = ROOT / "docs" / "reasons.md"
_CODE = re.compile(r"[A-Z][A-Z0-9_]+")

# Raised inside SQL, so Spark's message carries it.
IN_SQL = {"NEGATIVE_COUNT", "SOURCE_VALUE", "LOG_WITHOUT_ROW"}


def documented(heading: str) -> set[str]:
    """The codes in the first cells of the tables of a section."""
    rows = re.findall(r"^\| ((?:`[A-Z0-9_]+`(?:, )?)+) \|", section(PAGE, heading), re.MULTILINE)
    return {code for row in rows for code in re.findall(r"`(.*?)`", row)}


def raised() -> set[str]:
    """The codes that errors are made with: the first words in capitals among a call's first arguments."""
    found: set[str] = set(_ADVICE)
    for file in (ROOT / "src" / "strandline").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _makes_an_error(node.func):
                texts = [a.value for a in node.args[:3] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                found.update([text for text in texts if _CODE.fullmatch(text)][:1])
    return found


def _makes_an_error(called: ast.expr) -> bool:
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return name.endswith("Error") or name in ("error_at", "_about_query", "Finding")


def test_every_reason_is_documented_and_no_other() -> None:
    assert documented("Reasons") == set(MEANINGS)


def test_the_meaning_of_a_limitation_is_that_of_the_code() -> None:
    page = section(PAGE, "Reasons").split("### Why a query is not maintained incrementally")[1]
    for code, text in re.findall(r"^\| `([A-Z_]+)` \| (.*) \|$", page, re.MULTILINE):
        assert text.startswith(MEANINGS[code]), code


def test_every_error_is_documented_and_no_other() -> None:
    assert documented("Errors") == raised() | IN_SQL
