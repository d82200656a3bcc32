"""The page about strategies prints what it shows."""

from __future__ import annotations

from strandline.propagate.strategies.enumeration import choices, combined
from strandline.propagate.strategies.work import LinearWork
from tests.docs.markdown import ROOT, blocks
from tests.docs.tour import carry_out

PAGE = ROOT / "docs" / "strategies.md"


def test_the_page_shows_what_its_program_prints() -> None:
    steps = blocks(PAGE, "python", "text")
    assert [step.language for step in steps] == ["python", "text"]
    namespace: dict[str, object] = {"__name__": "strategies"}
    carry_out(steps, namespace)
    work = namespace["work"]
    assert isinstance(work, LinearWork)
    assert min(map(work.of, combined(work.graph, choices(work.graph)))) == 26_120
