"""Commands, statements and settings that the documentation shows exist."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml
from typer.testing import CliRunner

from bench.__main__ import ALSO_CALLED, BENCHMARKS
from strandline.cli.app import app
from strandline.project.config import ProjectConfig
from strandline.project.folder import source_config
from strandline.sql import ddl
from tests.docs.markdown import DOCS, PAGES, README, ROOT, Block, blocks

CONSOLE = [block for page in PAGES for block in blocks(page, "console")]
SQL = [block for page in (README, *DOCS) for block in blocks(page, "sql")]
YAML = [block for page in (README, *DOCS) for block in blocks(page, "yaml")]


def commands(block: Block) -> list[list[str]]:
    lines = [line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ ")]
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("block", CONSOLE, ids=str)
def test_commands_are_understood(block: Block) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    targets += [f"bench-{name}" for name in (*BENCHMARKS, *ALSO_CALLED)]
    assert commands(block)
    for program, *arguments in commands(block):
        match program:
            case "strandline":
                assert understood(arguments), arguments
            case "make":
                assert arguments[0] in targets
            case _:
                assert program == "cd"


def understood(arguments: list[str]) -> bool:
    """Whether command and options exist: with ``-h`` a command line is parsed, but not carried out."""
    return CliRunner().invoke(app, [*arguments, "-h"]).exit_code == 0


@pytest.mark.parametrize("block", SQL, ids=str)
def test_statements_are_understood(block: Block) -> None:
    ddl.parse(block.text)


@pytest.mark.parametrize("block", YAML, ids=str)
def test_settings_are_valid(block: Block) -> None:
    found = yaml.safe_load(block.text)
    if "kind" in found:
        source_config(found, str(block))
    else:
        ProjectConfig.model_validate(found)


@pytest.mark.parametrize("line", ["advise", "refresh --fast", "plan --full --quick", "--projects shop status"])
def test_a_command_that_does_not_exist_would_be_found_out(line: str) -> None:
    assert not understood(line.split())
