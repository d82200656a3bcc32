"""``strandline watch`` where there is nothing to refresh, so that no Spark is needed."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from strandline.catalog import Catalog
from tests.cli.conftest import Invoke, without_java
from tests.cli.conftest import invoke as invoke
from tests.conftest import new_project
from tests.watch.process import WatchProcess


@pytest.fixture
def project(tmp_path: Path) -> Path:
    new_project(tmp_path / "project")
    return tmp_path / "project"


def events(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_empty_project_is_watched_and_kept_in_order_without_spark(project: Path) -> None:
    done = without_java("--project", project, "watch", "--json", "--for", "1", "--poll", "0.2")
    assert (done.returncode, done.stderr) == (0, "")
    told = events(done.stdout)
    assert [event["event"] for event in told] == ["started", "maintained", "stopping", "stopped"]
    assert all("time" in event for event in told) and told[2]["reason"] == "time is over"


def test_lines_for_people_have_a_time_an_event_and_what_is_known(project: Path) -> None:
    done = without_java("--project", project, "watch", "--for", "0", "--maintain-every", "never")
    lines = done.stdout.splitlines()
    assert lines[0][20:] == "started, poll 5.0, max_lag 30.0"
    assert [line[20:] for line in lines[1:]] == ["stopping, reason time is over", "stopped"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(project: Path, number: int) -> None:
    with WatchProcess(project, "--maintain-every", "never") as watch:
        watch.until(lambda event: event["event"] == "started", 20)
        assert watch.end(number, 10) == 0
        assert [event["event"] for event in watch.told] == ["started", "stopping", "stopped"]


def test_another_process_that_holds_the_lock_is_waited_for_and_told_of_once(project: Path) -> None:
    (project / "views" / "v.sql").write_text("CREATE MATERIALIZED VIEW v AS SELECT 1 AS a")
    with Catalog.open(f"sqlite:///{project / '.strandline' / 'catalog.db'}") as catalog, catalog.lock.acquire("a test"):
        done = without_java("--project", project, "watch", "--json", "--for", "2", "--poll", "0.2")
    told = events(done.stdout)
    assert [event["event"] for event in told] == ["started", "waiting", "stopping", "stopped"]
    assert "a test" in str(told[1]["reason"]) and done.returncode == 0


def test_a_file_that_cannot_be_read_is_told_and_waited_for(project: Path) -> None:
    (project / "views" / "v.sql").write_text("CREATE MATERIALIZED VIEW v AS SELECT FROM")
    done = without_java("--project", project, "watch", "--json", "--for", "1", "--poll", "0.2")
    told = events(done.stdout)
    assert [event["event"] for event in told] == ["started", "trouble", "stopping", "stopped"]
    assert told[1]["what"] == "look" and "SQL_SYNTAX" in str(told[1]["reason"])


def test_a_lock_that_nobody_waits_for_any_more_is_no_trouble(project: Path) -> None:
    file = project / "views" / "v.sql"
    file.write_text("CREATE MATERIALIZED VIEW v AS SELECT 1 AS a")
    with WatchProcess(project, "--poll", "0.2", "--maintain-every", "never") as watch:
        catalog = Catalog.open(f"sqlite:///{project / '.strandline' / 'catalog.db'}")
        with catalog, catalog.lock.acquire("a test"):
            watch.until(lambda event: event["event"] == "waiting", 20)
            file.unlink()
        assert watch.until(lambda event: event["event"] == "recovered", 10)["what"] == "lock"


def test_a_refresh_that_nobody_wants_any_more_is_no_trouble(project: Path) -> None:
    file = project / "views" / "v.sql"
    file.write_text("CREATE MATERIALIZED VIEW v AS SELECT a FROM nowhere.t")
    with WatchProcess(project, "--poll", "0.2", "--maintain-every", "never") as watch:
        assert watch.until(lambda event: event["event"] == "trouble", 20)["what"] == "refresh"
        file.unlink()
        assert watch.until(lambda event: event["event"] == "recovered", 10)["what"] == "refresh"


def test_wrong_usage(project: Path, invoke: Invoke) -> None:
    assert invoke("watch", "--poll", "30", project=project).exit_code == 2
    assert invoke("watch", "--maintain-every", "often", project=project).exit_code == 2
    assert invoke("watch", "--maintain-every", "0 days", "--for", "0", project=project).exit_code == 2
    unknown = invoke("watch", "nothing", project=project)
    assert unknown.exit_code == 1 and "UNKNOWN_VIEW" in unknown.stderr
