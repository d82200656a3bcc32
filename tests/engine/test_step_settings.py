"""What a step sets in its session: a compiled one goes by the warehouse's settings, an interpreted one by its own."""

from __future__ import annotations

from strandline.engine.step_settings import of_step

PARTITIONS, ADAPTIVE = "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"


def test_the_warehouse_settles_what_compiled_steps_do() -> None:
    given = {PARTITIONS: "64", ADAPTIVE: "false", "spark.driver.memory": "8g"}
    found = of_step(given, compiled=True, partitions=3)
    assert (found[PARTITIONS], found[ADAPTIVE]) == ("64", "false")
    assert "spark.driver.memory" not in found


def test_rows_are_shuffled_into_the_parts_that_were_estimated() -> None:
    assert of_step({}, compiled=True, partitions=3)[PARTITIONS] == "3"
    assert of_step({}, compiled=True, partitions=None)[PARTITIONS] == "8"


def test_interpreted_steps_run_so_whatever_is_given() -> None:
    given = {PARTITIONS: "64", ADAPTIVE: "true", "spark.sql.codegen.wholeStage": "true"}
    found = of_step(given, compiled=False, partitions=3)
    assert (found[PARTITIONS], found[ADAPTIVE], found["spark.sql.codegen.wholeStage"]) == ("2", "false", "false")


def test_each_kind_of_step_sets_what_the_other_did() -> None:
    assert of_step({}, compiled=True, partitions=None).keys() == of_step({}, compiled=False, partitions=None).keys()
