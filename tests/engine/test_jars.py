"""The jars beside Spark's own are fetched once and then found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from strandline.engine import jars
from strandline.errors import EngineError

DELTA = "io.delta_delta-spark_4.1_2.13-4.4.0.jar"
POSTGRESQL = "org.postgresql_postgresql-42.7.7.jar"
IN_SPARK_TOO = "org.slf4j_slf4j-api-2.0.13.jar"


class Resolver:
    """Stands in for Spark's resolver: makes empty jars, and counts how often it is asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, ivy: Path, packages: Sequence[str]) -> list[Path]:
        self.calls += 1
        (ivy / "jars").mkdir(parents=True)
        made = [ivy / "jars" / name for name in (DELTA, POSTGRESQL, IN_SPARK_TOO)]
        for jar in made:
            jar.write_bytes(b"jar")
        return made


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    resolver = Resolver()
    monkeypatch.setattr(jars, "_resolved", resolver)
    return resolver


def test_after_set_up_the_jars_of_every_package_are_there() -> None:
    paths = jars.jar_paths()
    assert paths, "no jars in this environment: run `make setup`"
    assert all(Path(path).is_file() for path in paths)
    names = {Path(path).name for path in paths}
    for package in jars.PACKAGES:
        group, artifact, version = package.split(":")
        assert f"{group}_{artifact}-{version}.jar" in names


def test_nothing_is_found_before_fetching(tmp_path: Path) -> None:
    assert jars.jar_paths(tmp_path / "jars") == []


def test_fetching_keeps_what_spark_does_not_bring(tmp_path: Path, resolver: Resolver) -> None:
    folder = tmp_path / "share" / "jars"
    paths = jars.fetch(folder)
    assert paths == [str(folder / DELTA), str(folder / POSTGRESQL)] == jars.jar_paths(folder)
    assert sorted(entry.name for entry in folder.iterdir()) == [DELTA, jars.MANIFEST, POSTGRESQL]
    assert json.loads((folder / jars.MANIFEST).read_text())["packages"] == list(jars.PACKAGES)
    assert [entry.name for entry in folder.parent.iterdir()] == ["jars"], "scratch folders are removed"


def test_a_second_fetch_does_not_resolve_again(tmp_path: Path, resolver: Resolver) -> None:
    assert jars.fetch(tmp_path / "jars") == jars.fetch(tmp_path / "jars")
    assert resolver.calls == 1


def test_other_coordinates_are_fetched_anew(tmp_path: Path, resolver: Resolver) -> None:
    folder, others = tmp_path / "jars", ("org.example:other:1.0",)
    jars.fetch(folder)
    assert jars.jar_paths(folder, others) == []
    jars.fetch(folder, others)
    assert resolver.calls == 2
    assert json.loads((folder / jars.MANIFEST).read_text())["packages"] == list(others)


@pytest.mark.parametrize("damaged", [DELTA, jars.MANIFEST])
def test_an_incomplete_folder_is_fetched_anew(tmp_path: Path, resolver: Resolver, damaged: str) -> None:
    folder = tmp_path / "jars"
    paths = jars.fetch(folder)
    (folder / damaged).unlink()
    assert jars.jar_paths(folder) == []
    assert jars.fetch(folder) == paths
    assert resolver.calls == 2


def test_a_failed_fetch_leaves_the_old_jars_alone(
    tmp_path: Path, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "jars"
    paths = jars.fetch(folder)

    def unreachable(ivy: Path, packages: Sequence[str]) -> list[Path]:
        raise EngineError("JARS_NOT_FETCHED", "no network")

    with monkeypatch.context() as patch:
        patch.setattr(jars, "_resolved", unreachable)
        with pytest.raises(EngineError, match="JARS_NOT_FETCHED"):
            jars.fetch(folder, ("org.example:other:1.0",))
    assert jars.jar_paths(folder) == paths


def test_the_jars_are_listed_for_a_spark_that_others_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert jars.main(["--list"]) == 0
    assert capsys.readouterr().out.strip().split(",") == jars.jar_paths()
