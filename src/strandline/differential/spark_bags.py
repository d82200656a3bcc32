"""Bag differentials on Spark: SM-Bag, PH-Bag, SMC2-Bag and PHC2-Bag.

All take unchanged rows out first (monus) and pair what is left by the identification attributes, as Match does: the
i-th old row that is left with the i-th new one. SM finds equal rows by numbering the copies of each and merging, PH by
counting them with their sign in a hash table, C2 by numbering copies of ``<I, b>``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.differential.cost import Algorithm
from strandline.differential.hashing import Column, comparable
from strandline.differential.spark_reading import FILE, ROW
from strandline.differential.spark_report import NEW, OLD, fetched, keys, marked, named, rows_of_both
from strandline.differential.spark_sets import Job
from strandline.errors import DifferentialError

if TYPE_CHECKING:
    from strandline.engine.session import DataFrame


def run(algorithm: Algorithm, job: Job) -> None:
    """Carry out *algorithm*; the report is there at the end."""
    match algorithm:
        case "sm":
            _outer_join(job, _residue_by_merging(job))
        case "ph":
            _outer_join(job, _residue_by_counting(job))
        case "smc2" | "phc2":
            _of_pointers(job, algorithm)
        case _:
            raise ValueError(f"{algorithm} does not compare bags on Spark")


def _outer_join(job: Job, residue: DataFrame) -> None:
    rows_of_both(_paired(job, residue, _columns(job)), job.columns).write.mode("overwrite").parquet(job.report)


def _residue_by_merging(job: Job) -> DataFrame:
    """Rows of one side that the other has fewer copies of; ``side`` is -1 for old ones and 1 for new ones."""
    old, new = (_numbered(frame, _grouped(job)) for frame in _both(job))
    return _unmatched(old, new, (_grouped(job, OLD), _grouped(job, NEW)), _columns(job), "merge")


def _unmatched(
    old: DataFrame, new: DataFrame, by: tuple[list[str], list[str]], columns: list[str], hint: str
) -> DataFrame:
    """The *columns* of numbered copies that have no counterpart: copies are equal if they agree in *by*."""
    from pyspark.sql.functions import expr

    equals = [f"{o} <=> {n}" for o, n in zip(*by, strict=True)]
    condition = " AND ".join([*equals, f"{OLD}nth = {NEW}nth"])
    joined = marked(old, OLD).join(marked(new, NEW).hint(hint), expr(condition), "full")
    values = [f"if({NEW} IS NULL, {named(OLD, c)}, {named(NEW, c)}) AS {c}" for c in columns]
    return joined.where(f"{OLD} IS NULL OR {NEW} IS NULL").selectExpr(*values, f"if({NEW} IS NULL, -1, 1) AS side")


def _residue_by_counting(job: Job) -> DataFrame:
    """The same, from counts: rows that are in both as often cancel out."""
    from pyspark.sql.functions import expr

    old, new = _both(job)
    signed = old.selectExpr("*", "-1 AS sign").union(new.selectExpr("*", "1 AS sign"))
    signed = signed.repartition(job.buckets, *keys(job.columns))
    groups = [f"{text} AS g{place}" for place, text in enumerate(_grouped(job))]
    names = [f"g{place}" for place in range(len(groups))]
    values = [expr(f"any_value({c})").alias(c) for c in _columns(job)]
    net = signed.selectExpr("*", *groups).groupBy(*names).agg(expr("sum(sign)").alias("net"), *values)
    left = net.where("net <> 0").selectExpr(*_columns(job), "net", "explode(sequence(1, abs(net))) AS copy")
    return left.selectExpr(*_columns(job), "sign(net) AS side")


def _of_pointers(job: Job, algorithm: Algorithm) -> None:
    if job.old is None or job.old.pointed is None or job.new.pointed is None:
        raise DifferentialError(
            "ALGORITHM_IMPOSSIBLE",
            f"{algorithm} compares bags by the addresses of their rows, which text files and some Delta tables "
            "do not have; use sm, ph or window.",
        )
    small = [*keys(job.columns), *job.b, FILE, ROW]
    old, new = (
        _numbered(side.selectExpr("*", *job.hashes()).select(*small), _hashed(job), f"{FILE}, {ROW}")
        for side in (job.old.pointed, job.new.pointed)
    )
    job.reads += [("old", job.old.bytes), ("new", job.new.bytes)] * 2
    hint = "merge" if algorithm == "smc2" else "shuffle_hash"
    residue = _unmatched(old, new, (_hashed(job, OLD), _hashed(job, NEW)), small, hint)
    place = f"{job.scratch}/found"
    _paired(job, residue, small).write.mode("overwrite").parquet(place)
    found = job.engine.worker.read.parquet(place)
    new_rows = fetched(job.new.pointed, found, [(FILE, named(NEW, FILE)), (ROW, named(NEW, ROW))], NEW, job.columns)
    old_rows = fetched(job.old.pointed, found, [(FILE, named(OLD, FILE)), (ROW, named(OLD, ROW))], OLD, job.columns)
    new_rows.unionByName(old_rows).write.mode("overwrite").parquet(job.report)


def _paired(job: Job, residue: DataFrame, values: list[str]) -> DataFrame:
    """What is left of both sides in pairs of equal I, as a full outer join gives them, with one row a pair."""
    from pyspark.sql.functions import expr

    identification = [f"{comparable(key, kind)} AS i{n}" for n, (key, kind) in enumerate(_key_types(job))]
    names = [f"i{n}" for n in range(len(identification))]
    whole = f"struct({', '.join(values)})"
    rows = residue.selectExpr(*identification, "side", f"{whole} AS row")
    order = f"row_number() OVER (PARTITION BY {', '.join([*names, 'side'])} ORDER BY side) AS place"
    paired = (
        rows.selectExpr("*", order)
        .groupBy(*names, "place")
        .agg(
            expr("any_value(row) FILTER (WHERE side < 0)").alias("old_row"),
            expr("any_value(row) FILTER (WHERE side > 0)").alias("new_row"),
        )
    )
    sides = [f"{row}.{value} AS {named(side, value)}" for side, row in _ROWS for value in values]
    marks = [f"if({row} IS NULL, NULL, 1) AS {side}" for side, row in _ROWS]
    return paired.selectExpr(*sides, *marks)


_ROWS = ((OLD, "old_row"), (NEW, "new_row"))


def _both(job: Job) -> tuple[DataFrame, DataFrame]:
    """Whole rows of both sides, the old one as it was kept if it was."""
    job.reads += [("kept", job.f1_bytes) if job.f1 is not None else ("old", job.old.bytes if job.old else 0)]
    job.reads.append(("new", job.new.bytes))
    old = job.f1 if job.f1 is not None else job.old.frame if job.old is not None else None
    assert old is not None
    return old.select(*_columns(job)), job.new.frame


def _numbered(frame: DataFrame, by: list[str], order: str = "1") -> DataFrame:
    """Rows with the number of their copy among equal ones."""
    groups = ", ".join(by)
    return frame.selectExpr("*", f"row_number() OVER (PARTITION BY {groups} ORDER BY {order}) AS nth")


def _columns(job: Job) -> list[str]:
    return [f"c{place}" for place in range(len(job.columns.schema))]


def _grouped(job: Job, side: str | None = None) -> list[str]:
    """All columns as expressions that Spark can group by."""
    names = _columns(job) if side is None else [named(side, c) for c in _columns(job)]
    return [comparable(name, kind) for name, kind in zip(names, job.columns.schema.types, strict=True)]


def _key_types(job: Job) -> list[Column]:
    schema = job.columns.schema
    return [(key, schema.field(name).type) for key, name in zip(keys(job.columns), job.columns.key, strict=True)]


def _hashed(job: Job, side: str | None = None) -> list[str]:
    """``<I, b>`` as expressions that Spark can group by."""
    pairs = [(key if side is None else named(side, key), kind) for key, kind in _key_types(job)]
    return [*(comparable(key, kind) for key, kind in pairs), *(b if side is None else named(side, b) for b in job.b)]
