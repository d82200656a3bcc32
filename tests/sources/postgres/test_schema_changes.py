"""Tables change under the views that read them: what can be followed is, and what cannot holds back only its views."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from strandline.engine.session import Engine
from tests.sources.postgres.live import Live, live

pytestmark = [pytest.mark.postgres, pytest.mark.spark]

FOLLOWED = ("mixed", "vacuumed", "moved", "rewritten", "swapped", "replaced", "renumbered", "rekeyed", "away", "spare")
"""Tables of which only the copies are looked at."""

VIEWED = {
    "added": "SELECT * FROM src.added",
    "widened": "SELECT id, x, n FROM src.widened",
    "renamed": "SELECT id, x FROM src.renamed",
    "dropped": "SELECT id, x FROM src.dropped",
    "retyped": "SELECT id, x FROM src.retyped",
    "unkeyed": "SELECT id FROM src.unkeyed",
    "gone": "SELECT id FROM src.gone",
}


@pytest.fixture(scope="module")
def followed(own_database: str, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A table for each case, copied, and views over some."""
    with psycopg.connect(own_database, autocommit=True) as connection:
        for table in (*FOLLOWED, *VIEWED):
            connection.execute(
                f"CREATE TABLE {table} (id int PRIMARY KEY, x int, y text, z text, n numeric(10,2))".encode()
            )
            rows = "SELECT i, i * 10, 'y' || i, 'z' || i, i + 0.25 FROM generate_series(1, 3) AS i"
            connection.execute(f"INSERT INTO {table} {rows}".encode())
    with live(own_database, tmp_path_factory.mktemp("schema") / "project", engine, schema="public") as followed:
        for table in FOLLOWED:
            followed.warehouse.sql(
                f"CREATE MATERIALIZED VIEW of_{table} WITH NO DATA AS SELECT id, x, y FROM src.{table}"
            )
        for name, query in VIEWED.items():
            followed.follow(name, query)
        followed.refresh(*followed.copies(*FOLLOWED), *VIEWED)
        yield followed


def test_what_is_done_to_a_table_is_told_from_what_is_done_to_its_rows(followed: Live) -> None:
    # Between changes of rows, in one transaction.
    followed.together(
        "INSERT INTO mixed VALUES (4, 40, 'y4')",
        "ALTER TABLE mixed ADD more text DEFAULT 'm'",
        "INSERT INTO mixed VALUES (5, 50, 'y5')",
        "ALTER TABLE mixed DROP z",
        "UPDATE mixed SET y = 'changed' WHERE id = 1",
        "ALTER TABLE mixed ALTER y SET NOT NULL",
        "DELETE FROM mixed WHERE id = 2",
    )
    followed.execute("INSERT INTO vacuumed VALUES (4, 40, 'y4')", "VACUUM FULL vacuumed")
    # Under another name for a while, and in another schema.
    followed.execute(
        "ALTER TABLE moved RENAME TO elsewhere",
        "UPDATE elsewhere SET y = 'elsewhere' WHERE id = 1",
        "CREATE SCHEMA other",
        "ALTER TABLE elsewhere SET SCHEMA other",
        "INSERT INTO other.elsewhere VALUES (4, 40, 'y4')",
        "ALTER TABLE other.elsewhere SET SCHEMA public",
        "ALTER TABLE elsewhere RENAME TO moved",
    )
    followed.execute("ALTER TABLE rewritten ALTER y TYPE text USING upper(y)")
    followed.execute(
        "ALTER TABLE swapped RENAME y TO w", "ALTER TABLE swapped RENAME z TO y", "ALTER TABLE swapped RENAME w TO z"
    )
    followed.execute("DROP TABLE replaced", "CREATE TABLE replaced (id int PRIMARY KEY, x int, y text)")
    followed.execute("INSERT INTO replaced VALUES (7, 70, 'y7')")
    followed.together("ALTER TABLE renumbered DROP y", "ALTER TABLE renumbered ADD y text DEFAULT 'new'")
    followed.execute(
        "ALTER TABLE rekeyed DROP CONSTRAINT rekeyed_pkey, ADD PRIMARY KEY (x)", "UPDATE rekeyed SET id = 7"
    )
    followed.execute(
        "ALTER TABLE away RENAME y TO w", "UPDATE away SET w = 'away' WHERE id = 1", "ALTER TABLE away RENAME w TO y"
    )
    report = followed.refresh(*followed.copies(*FOLLOWED))
    assert {name: (copy.strategy, copy.reason.code) for name, copy in report.hidden.items()} == {
        "src.mixed": ("incremental", "CHANGES"),
        "src.vacuumed": ("incremental", "CHANGES"),
        "src.moved": ("incremental", "CHANGES"),
        "src.rewritten": ("full", "SOURCE_TABLE_REWRITTEN"),
        "src.swapped": ("full", "SOURCE_TABLE_REWRITTEN"),
        "src.replaced": ("full", "SOURCE_TABLE_REPLACED"),
        "src.renumbered": ("full", "SOURCE_TABLE_REWRITTEN"),
        "src.rekeyed": ("full", "FIRST_FILL"),
        "src.away": ("full", "SOURCE_SCHEMA_CHANGED"),
        "src.spare": ("none", "UNCHANGED"),
    }
    followed.assert_copied(*FOLLOWED)


def test_views_follow_what_they_can_and_else_keep_what_they_show(followed: Live) -> None:
    shown = {name: sorted(followed.read(name)) for name in VIEWED}
    followed.execute(
        "ALTER TABLE added ADD extra int DEFAULT 1",
        "INSERT INTO added VALUES (4, 40, 'y4', 'z4', 4, 4)",
        "ALTER TABLE widened ALTER x TYPE bigint, ALTER n TYPE numeric(12,2)",
        "INSERT INTO widened VALUES (4, 5000000000, NULL, NULL, 9999999999.99)",
        "INSERT INTO renamed VALUES (4, 40)",
        "ALTER TABLE renamed RENAME x TO w",
        "ALTER TABLE dropped DROP x, ALTER id TYPE bigint",
        "ALTER TABLE unkeyed DROP CONSTRAINT unkeyed_pkey",
        "ALTER TABLE retyped ALTER x TYPE text",
        "DROP TABLE gone",
    )
    report = followed.warehouse.refresh(*VIEWED)
    assert {name: view.problem and view.problem.split(":")[0] for name, view in report.views.items()} == {
        "added": None,
        "widened": None,
        "renamed": "SOURCE_SCHEMA_CHANGED",
        "dropped": "SOURCE_SCHEMA_CHANGED",
        "retyped": "SOURCE_SCHEMA_CHANGED",
        "unkeyed": "SOURCE_FAILED",
        "gone": "SOURCE_TABLE_GONE",
    }
    assert report.views["added"].strategy == "incremental"
    for name in ("renamed", "dropped", "retyped", "unkeyed", "gone"):
        assert sorted(followed.read(name)) == shown[name]
    followed.shown["added"] = "SELECT id, x, y, z, n FROM added"
    followed.assert_same("added", "widened")
    status = followed.warehouse.status()
    notes = {source.leaf: source.note for source in status.sources}
    assert notes["src.added"] == "columns that were added later and that no view reads: extra"
    assert notes["src.widened"] is None
    problems = {view.name: view.problem for view in status.views if view.name in VIEWED}
    assert [name for name, problem in problems.items() if not problem] == ["added", "widened"]
    assert "[NO_REPLICA_IDENTITY] src.unkeyed: public.unkeyed has no primary key" in str(problems["unkeyed"])
    assert problems["renamed"] == (
        "SOURCE_SCHEMA_CHANGED: src.renamed has no column x any more; it has id, w, y, z, n; put it back, or redefine "
        "the views that read it with CREATE OR REPLACE"
    )
    assert problems["retyped"] == (
        "SOURCE_SCHEMA_CHANGED: src.retyped.x was int and is string now; a full refresh takes it as it is now"
    )


def test_views_go_on_when_they_are_mended(followed: Live) -> None:
    followed.execute(
        "UPDATE renamed SET w = 41 WHERE id = 4",
        "ALTER TABLE renamed RENAME w TO x",
        "UPDATE dropped SET y = 'mended'",
        "UPDATE retyped SET x = 'text'",
        "ALTER TABLE unkeyed REPLICA IDENTITY FULL",
        "UPDATE unkeyed SET id = 9 WHERE id = 1",
        "CREATE TABLE gone (id int PRIMARY KEY)",
        "INSERT INTO gone VALUES (8), (9)",
    )
    followed.warehouse.sql("CREATE OR REPLACE MATERIALIZED VIEW dropped WITH NO DATA AS SELECT id, y FROM src.dropped")
    followed.shown["dropped"] = "SELECT id, y FROM dropped"
    report = followed.warehouse.refresh("renamed", "dropped", "retyped", "unkeyed", "gone")
    problems = {name: view.problem for name, view in report.views.items() if view.problem}
    assert list(problems) == ["retyped"]
    assert report.hidden["src.gone"].reason.code == "SOURCE_TABLE_REPLACED"
    followed.refresh("retyped", full=True)
    followed.assert_same()
    followed.assert_verified("renamed", "dropped", "retyped", "gone")
    assert all(view.problem is None for view in followed.warehouse.status().views)


def test_a_column_that_no_view_reads_any_more_is_not_missed(followed: Live) -> None:
    followed.warehouse.sql("CREATE MATERIALIZED VIEW other WITH NO DATA AS SELECT y FROM src.spare")
    followed.execute("ALTER TABLE spare DROP x", "INSERT INTO spare VALUES (4, 'y4')")
    report = followed.warehouse.refresh("src.spare")
    assert not report.ok and report.hidden["src.spare"].reason.code == "SOURCE_SCHEMA_CHANGED"
    followed.warehouse.drop("of_spare")
    followed.refresh("src.spare")
    assert [column.name for column in followed.source.node("spare").visible] == ["id", "y"]
    followed.assert_copied("spare")
