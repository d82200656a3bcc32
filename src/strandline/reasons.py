"""Why a view is refreshed the way it is: stable codes, each with what it means and what to do.

A code is part of the product's interface: programs may match it, and a golden test pins the set.
"""

from __future__ import annotations

from dataclasses import dataclass

MEANINGS: dict[str, str] = {
    "UNCHANGED": "no input has changed since the last refresh",
    "CHANGES": "computed from the changes of its inputs",
    "DUMP_COMPARED": "the source has no log of changes, so the newest dump of the table is compared with its copy",
    "GROUPS_AFFECTED": "an aggregate cannot be subtracted, so the groups that changed are computed anew",
    "KEYS_AFFECTED": "rows come and go with rows elsewhere, so the keys that changed are looked up anew",
    "PARTITIONS_AFFECTED": "a window function reads whole partitions, so those that changed are computed anew",
    "ONE_PARTITION": "a window without PARTITION BY reads all rows, so all are computed anew from the stored input",
    "TOP_K": "the first rows are chosen of all rows, so they are chosen anew from the stored input",
    "COMPENSATED": "what its sources report and answer is made into changes, less what slipped in between",
    "FIRST_FILL": "the view is filled for the first time",
    "DEFINITION_CHANGED": "the view's definition was edited",
    "REQUESTED": "a full refresh was asked for",
    "POLICY_FULL": "the view is declared REFRESH POLICY FULL",
    "COST": "recomputing is estimated to be cheaper than applying the changes",
    "INPUT_REBASELINED": "an input was made anew, so that there is no delta of it",
    "CHANGE_FEED_GAP": "the source no longer holds the versions between the last refresh and now",
    "SLOT_LOST": "the source's log of changes was lost or moved on without us, so the copies are made anew",
    "SOURCE_REPLACED": "the source is another server than before, or went back in time, so the copies are made anew",
    "SOURCE_TABLE_REWRITTEN": "the source table was rewritten or lost changes on their way, so its copy is made anew",
    "SOURCE_TRUNCATED": "the source table was emptied at once, and what was in it is not known",
    "DUMP_HELD_BACK": "the newest dump of the source table is not taken, because it cannot be right as it is",
    "SOURCE_UNREACHABLE": "the source does not answer",
    "SOURCE_FAILED": "the source refuses what is needed to read it",
    "SOURCE_TABLE_REPLACED": "the source table was dropped and made anew",
    "SOURCE_SCHEMA_CHANGED": "a column that the view uses was renamed, dropped or given another type",
    "SOURCE_TABLE_GONE": "the source table does not exist any more",
    "INPUT_FAILED": "an input of the view could not be refreshed",
    "GROUP_HELD": "another view of its group could not be refreshed, and they move together",
    "INPUT_GONE": "a pinned version of an input was removed while the refresh ran",
    "DISK_FULL": "no space is left where the warehouse keeps its tables",
    "SPARK_GONE": "the Spark process ended in the middle of a step",
    "NATURAL_JOIN": "USING does not name one column on each side; name the columns with ON",
    "SUBQUERY": "this subquery is not maintained incrementally",
    "WINDOW_FUNCTION": "this window function is not maintained incrementally",
    "GROUPING_SETS": "these grouping sets are not maintained incrementally",
    "BASE_VIEW_FAILED": "what its sources report and answer could not be made into changes",
    "BASE_VIEW": "what is read of tables that are not copied is stored beside the view, and follows them by asking",
    "EVALUATED_HERE": "a source does not evaluate this condition as Spark does, so it is evaluated here",
    "CONSTRAINT_SET_ASIDE": "a declared foreign key does not hold at these positions, so it was not made use of",
    "HIDDEN_STATE": "what a part of the query gives is stored beside the view, or computed where it is read",
    "ORDER_DEPENDENT": "two correct computations may differ, because rows that tie come in any order",
    "LIMIT": "this LIMIT or its ORDER BY is not maintained incrementally",
    "GENERATOR": "this way of making rows of rows is not maintained incrementally; LATERAL VIEW is",
    "AGGREGATE_FUNCTION": "this aggregate function is not maintained incrementally",
    "NON_DETERMINISTIC": "the view calls a function whose value changes by itself",
    "CLAUSE": "a clause of the query is not maintained incrementally",
    "TYPE_NOT_COMPARABLE": "rows with a column of this type cannot be compared, so single rows cannot be removed",
    "COMPILED_FORM_DIFFERS": "Spark gives the compiled form another schema, so the query is run as written",
}


@dataclass(frozen=True)
class Reason:
    """A code and what it says about the case at hand."""

    code: str
    detail: str = ""

    def __post_init__(self) -> None:
        if self.code not in MEANINGS:
            raise ValueError(f"unknown reason code {self.code}")

    @property
    def text(self) -> str:
        """The detail if there is one, else what the code means."""
        return self.detail or MEANINGS[self.code]

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"

    def to_dict(self) -> dict[str, str]:
        """The reason as reports and the catalog show it."""
        return {"code": self.code, "text": self.text}
