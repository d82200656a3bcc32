"""Which settings a session of ours is started with."""

from __future__ import annotations

from strandline.engine.settings import session_settings


def test_a_local_session_keeps_to_the_loopback_interface() -> None:
    found = session_settings({}, ["delta.jar"], "/scratch")
    assert found["spark.master"] == "local[*]" and found["spark.jars"] == "delta.jar"
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "127.0.0.1"


def test_executors_elsewhere_must_find_the_driver() -> None:
    """Spark then finds a name for the driver's host itself, unless the project gives one."""
    cluster = {"spark.master": "spark://master:7077"}
    assert not {"spark.driver.host", "spark.driver.bindAddress"} & set(session_settings(cluster, [], "/scratch"))
    named = session_settings({**cluster, "spark.driver.host": "edge.example.com"}, [], "/scratch")
    assert named["spark.driver.host"] == "edge.example.com"


def test_the_projects_settings_win_and_its_jars_are_added() -> None:
    given = {"spark.driver.memory": "8g", "spark.jars": "/opt/a.jar,/opt/b.jar"}
    found = session_settings(given, ["delta.jar"], "/scratch")
    assert found["spark.driver.memory"] == "8g"
    assert found["spark.jars"] == "delta.jar,/opt/a.jar,/opt/b.jar"
