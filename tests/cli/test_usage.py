"""What the command line does before Spark comes in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke, parsed, without_java

COMMANDS = ("init", "demo", "plan", "refresh", "explain", "status", "verify", "history", "simulate", "diff")
IN_A_PROJECT = (("plan",), ("refresh",), ("explain",), ("status",), ("verify",), ("history", "v"))


def test_init_writes_a_project_and_says_what_to_do_next(tmp_path: Path, invoke: Invoke) -> None:
    result = invoke("init", tmp_path / "shop")
    assert result.exit_code == 0
    assert sorted(p.name for p in (tmp_path / "shop").iterdir()) == [".gitignore", "sources", "strandline.yml", "views"]
    for word in ("sources/lake.yml", "kind: delta", "CREATE MATERIALIZED VIEW", "strandline refresh"):
        assert word in result.stdout


def test_a_group_that_names_no_view_is_told_of(empty: Path, invoke: Invoke) -> None:
    with (empty / "strandline.yml").open("a", encoding="utf-8") as file:
        file.write("groups:\n  money: [Costs, cots]\n")
    (empty / "views" / "costs.sql").write_text("CREATE MATERIALIZED VIEW costs AS SELECT 1 AS a")
    for command in ("status", "plan"):
        told = invoke(command, project=empty).stdout
        assert "group money names cots, and there is no such view; there are: costs" in told
        assert "Costs" not in told


def test_init_leaves_a_project_that_is_there_alone(empty: Path, invoke: Invoke) -> None:
    before = (empty / "strandline.yml").read_text()
    result = invoke("init", empty)
    assert result.exit_code == 1
    assert result.stderr.startswith("[PROJECT_EXISTS] ")
    assert (empty / "strandline.yml").read_text() == before


def test_init_leaves_a_folder_with_other_things_alone(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    result = invoke("init", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.startswith("[FOLDER_NOT_EMPTY] ")
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("arguments", [(), *((command,) for command in COMMANDS)])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_shows_examples_everywhere(invoke: Invoke, arguments: tuple[str, ...], option: str) -> None:
    result = invoke(*arguments, option)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: strandline {' '.join(arguments)}".rstrip())
    assert "Examples:" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [(), ("nonsense",), ("init",), ("history",), ("refresh", "--fast"), ("refresh", "--wait", "soon"), ("--project",)],
)
def test_bad_usage_ends_with_status_2(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    assert invoke(*arguments).exit_code == 2


@pytest.mark.parametrize("command", IN_A_PROJECT)
def test_a_folder_that_is_no_project_is_an_error_and_stays_as_it_is(
    tmp_path: Path, invoke: Invoke, command: tuple[str, ...]
) -> None:
    result = invoke(*command, project=tmp_path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("[NOT_A_PROJECT] ")
    assert "strandline init" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", IN_A_PROJECT)
def test_errors_are_json_where_json_is_asked_for(tmp_path: Path, invoke: Invoke, command: tuple[str, ...]) -> None:
    result = invoke(*command, "--json", project=tmp_path)
    assert result.exit_code == 1
    assert parsed(result)["error"]["code"] == "NOT_A_PROJECT"


def test_bad_yaml_is_named_with_its_line(empty: Path, invoke: Invoke) -> None:
    (empty / "sources" / "lake.yml").write_text("kind: delta\npath: [\n")
    result = invoke("status", project=empty)
    assert result.exit_code == 1
    assert result.stderr.startswith("sources/lake.yml:3:1: [BAD_YAML] ")
    error = parsed(invoke("status", "--json", project=empty))["error"]
    assert (error["code"], error["file"], error["line"]) == ("BAD_YAML", "sources/lake.yml", 3)


def test_a_source_without_what_it_needs_is_an_error(empty: Path, invoke: Invoke) -> None:
    (empty / "sources" / "lake.yml").write_text("kind: delta\n")
    result = invoke("plan", project=empty)
    assert result.exit_code == 1
    assert "[BAD_CONFIG]" in result.stderr


def test_an_empty_project_has_nothing_to_show(empty: Path, invoke: Invoke) -> None:
    shown = invoke("status", project=empty)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "Nothing is published yet." in shown.stdout
    found = parsed(invoke("status", "--json", project=empty))
    assert found == {
        **dict.fromkeys(("state", "published_at", "unfinished")),
        **{name: [] for name in ("views", "sources", "logs", "base_views", "pending", "notes")},
        "costs": {"costs": "fixed", "calibration": None},
    }
    assert "There are no views yet." in invoke("plan", project=empty).stdout
    assert "There are no views yet." in invoke("verify", project=empty).stdout


def test_a_refresh_of_an_empty_project_does_nothing(empty: Path, invoke: Invoke) -> None:
    assert "There are no views yet." in invoke("refresh", project=empty).stdout
    report = parsed(invoke("refresh", "--json", project=empty))
    assert (report["state"], report["views"], report["ok"]) == (None, {}, True)


def test_an_unknown_view_is_an_error(empty: Path, invoke: Invoke) -> None:
    for command in (("plan", "v"), ("refresh", "v"), ("explain", "v"), ("history", "v")):
        result = invoke(*command, project=empty)
        assert result.exit_code == 1
        assert "there is no view v" in result.stderr


def test_a_view_file_that_is_not_applied_shows_in_status_and_plan(empty: Path, invoke: Invoke) -> None:
    (empty / "views" / "v.sql").write_text("CREATE MATERIALIZED VIEW v AS SELECT * FROM lake.t")
    assert "not applied yet: v: new (views/v.sql)" in invoke("status", project=empty).stdout
    assert "to be applied first: v: new (views/v.sql)" in invoke("plan", project=empty).stdout


def test_no_java_is_needed_to_look_at_a_project(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    for command in (("init", folder), ("--project", folder, "status"), ("--project", folder, "refresh", "--json")):
        done = without_java(*command)
        assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["views"] == {}


@pytest.mark.postgres
def test_without_java_a_demo_says_what_to_install(tmp_path: Path) -> None:
    done = without_java("demo", "--folder", tmp_path / "demo")
    assert done.returncode == 1
    assert done.stderr.startswith("[JAVA_MISSING] ")


def test_a_demo_leaves_a_folder_with_other_things_alone(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    result = invoke("demo", "--folder", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.startswith("[FOLDER_NOT_EMPTY] ")
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]
