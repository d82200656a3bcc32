"""Links lead somewhere, and what is named in the code is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.markdown import DOCS, PAGES, ROOT, anchors, prose, relative_links

SOURCE = ROOT / "src" / "strandline"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in relative_links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} leads nowhere"
        assert ROOT in file.parents, f"{target} leads out of the repository"
        assert not anchor or anchor in anchors(file), f"{target}: there is no such heading"


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_that_are_named_exist(page: Path) -> None:
    for name in re.findall(r"`([\w/]+\.py)`", prose(page)):
        places = (ROOT / name, SOURCE / name)
        assert any(place.is_file() for place in places), f"there is no {name}"


def test_the_rooms_of_the_architecture_are_those_of_the_code() -> None:
    listed = re.findall(r"^\| (.*?) \|", prose(ROOT / "docs" / "architecture.md"), re.MULTILINE)
    rooms = {room for cell in listed for room in re.findall(r"`(\w+)/`", cell)}
    assert rooms == {place.name for place in SOURCE.iterdir() if (place / "__init__.py").is_file()}


def test_names_of_the_glossary_are_in_the_code() -> None:
    named = re.findall(r"`(\w+)(?:\.\w+)?` in `([\w/]+\.py)`", prose(ROOT / "docs" / "glossary.md"))
    assert named
    for name, module in named:
        code = (SOURCE / module).read_text(encoding="utf-8")
        assert re.search(rf"^(class |def )?{name}\b", code, re.MULTILINE), f"{module} has no {name}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        waiting += [(page.parent / link.partition("#")[0]).resolve() for link in relative_links(page)]
    assert [page for page in DOCS if page not in reached] == []
