"""What people write with DataFrames, over the tables of the shop: each a function of what gives tables by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql.connect import functions as F
from pyspark.sql.connect.window import Window

Table = Callable[[str], Any]


def _by_customer(table: Table) -> Any:
    orders, customers = table("shop.orders"), table("shop.customers")
    return (
        orders.join(customers, orders["c_id"] == customers["c_id"])
        .filter(orders["total"] > 20)
        .groupBy(customers["region"])
        .agg(F.count("*").alias("orders"), F.sum("total").alias("total"), F.avg("weight").alias("weight"))
    )


def _best_lines(table: Table) -> Any:
    per_order = Window.partitionBy("o_id").orderBy(F.desc("price"), "product", "qty")
    lines = table("lake.lines").withColumn("place", F.row_number().over(per_order))
    return lines.filter(F.col("place") <= 2).drop("place")


def _running(table: Table) -> Any:
    window = Window.partitionBy("c_id").orderBy("o_id").rowsBetween(-1, Window.currentRow)
    return table("shop.orders").select("o_id", F.sum("total").over(window).alias("running"))


def _self_join(table: Table) -> Any:
    a, b = table("shop.orders").alias("a"), table("shop.orders").alias("b")
    return a.join(b, (F.col("a.c_id") == F.col("b.c_id")) & (F.col("a.o_id") < F.col("b.o_id"))).select(
        F.col("a.o_id").alias("one"), F.col("b.o_id").alias("other")
    )


def _both_keys(table: Table) -> Any:
    orders, customers = table("shop.orders"), table("shop.customers")
    both = orders.join(customers, orders["c_id"] == customers["c_id"], "left")
    return both.select(orders["c_id"], customers["c_id"].alias("known"), (orders["o_id"] % 3).alias("third")).filter(
        F.col("third") > 0
    )


def _kinds(table: Table) -> Any:
    size = F.when(F.col("total") > 60, "large").when(F.col("total").isNull(), "none").otherwise("small")
    return table("shop.orders").withColumn("size", size).groupBy("size").agg(F.max("day").alias("last"))


def _lists(table: Table) -> Any:
    parts = F.split(F.concat_ws(",", "product", F.lit("x$1'\\\n")), ",").alias("parts")
    return table("lake.lines").select(
        "o_id", parts, F.transform(F.sequence(F.lit(1), "qty"), lambda x: x * 2).alias("twice")
    )


def _literals(table: Table) -> Any:
    return table("shop.customers").select(
        "c_id",
        F.lit(True).alias("b"),
        F.lit(1.5).alias("d"),
        F.lit(-7).alias("i"),
        F.lit(10**12).alias("l"),
        F.lit(Decimal("20.50")).alias("n"),
        F.lit(date(2026, 1, 31)).alias("day"),
        F.lit(datetime(2026, 1, 31, 12, 30)).alias("moment"),
        F.lit(b"\x00\xff").alias("bytes"),
        F.lit(None).cast("string").alias("nothing"),
        F.lit("it's \\ 100% ${x}").alias("text"),
        F.array(F.lit(1), F.lit(2)).alias("ones"),
    )


def _logic(table: Table) -> Any:
    o = table("shop.orders")
    return o.filter(
        ((o["total"] + 1) * 2 - (o["weight"] - 3) > 50) & ~(o["day"].isNull() | o["c_id"].isin(1, 2))
        | (-o["o_id"] == -3)
        | o["total"].between(Decimal("3"), 9)
    )


def _exploded(table: Table) -> Any:
    tags = table("shop.customers").select("c_id", F.explode(F.split("region", "r")).alias("tag"))
    return tags.groupBy("tag").count()


def _pairs(table: Table) -> Any:
    return table("lake.lines").select("product", F.posexplode(F.array("qty", "o_id")).alias("place", "number"))


def _names(table: Table) -> Any:
    customers = table("shop.customers").withColumnRenamed("name", "label").select("label")
    return customers.union(table("lake.lines").select("product")).union(table("shop.customers").select("region"))


def _above_average(table: Table) -> Any:
    orders = table("shop.orders")
    mean = table("shop.orders").select(F.avg("total")).scalar()
    return orders.filter(orders["total"] > mean).select("o_id", "total")


def _with_orders(table: Table) -> Any:
    orders, customers = table("shop.orders").alias("o"), table("shop.customers").alias("c")
    theirs = orders.filter((F.col("o.c_id") == F.col("c.c_id").outer()) & (F.col("o.total") > 30))
    return customers.filter(theirs.exists()).select("c_id", "name")


def _aliased(table: Table) -> Any:
    both = table("shop.orders").alias("o").join(table("shop.customers").alias("c"), F.expr("o.c_id = c.c_id"))
    return both.select("o.*", "c.region").alias("j").filter("j.region = 'r1' OR total > 50")


def _numbered(table: Table) -> Any:
    count = F.count("*").over(Window.partitionBy("product").orderBy(F.lit(1)))
    return table("lake.lines").select("product", count.alias("n")).distinct()


def _nested(table: Table) -> Any:
    made = table("lake.lines").select(
        F.struct("product", F.col("qty").alias("n")).alias("s"), F.create_map("product", "qty").alias("m")
    )
    return made.select(
        "s.product", F.col("s")["n"].alias("n"), F.col("m")["p1"].alias("p1"), F.col("s.n").alias("again")
    )


TRANSFORMATIONS: dict[str, Callable[[Table], Any]] = {
    "scan": lambda table: table("shop.customers"),
    "filter": lambda table: table("shop.orders").filter("total > 40 AND weight IS NOT NULL").select("o_id", "total"),
    "select_expr": lambda table: table("lake.lines").selectExpr("*", "qty * price AS amount").filter("amount > 10"),
    "join_and_group": _by_customer,
    "using": lambda table: table("shop.orders").join(table("shop.customers"), "c_id").select("c_id", "name", "total"),
    "using_left": lambda table: table("shop.orders").join(table("shop.customers"), ["c_id"], "left"),
    "using_right": lambda table: table("shop.orders").join(table("shop.customers"), "c_id", "right"),
    "using_full": lambda table: table("shop.orders").join(table("shop.customers"), "c_id", "outer"),
    "semi": lambda table: table("shop.customers").join(table("shop.orders").filter("total > 50"), "c_id", "semi"),
    "anti": lambda table: table("shop.customers").join(table("shop.orders").filter("total > 50"), "c_id", "anti"),
    "cross": lambda table: (
        table("shop.customers").select("c_id").crossJoin(table("lake.lines").select("qty").distinct())
    ),
    "self_join": _self_join,
    "both_keys": _both_keys,
    "having": lambda table: table("lake.lines").groupBy("product").agg(F.sum("qty").alias("n")).filter(F.col("n") > 20),
    "count": lambda table: table("lake.lines").groupBy("product").count().withColumnRenamed("count", "n"),
    "renamed": lambda table: table("lake.lines").groupBy("product").max("qty").withColumnRenamed("max(qty)", "most"),
    "global": lambda table: table("shop.orders").agg(F.sum("total").alias("total"), F.countDistinct("c_id").alias("n")),
    "rollup": lambda table: table("shop.customers").rollup("region", "name").agg(F.count("*").alias("n")),
    "cube": lambda table: table("shop.customers").cube("region", "name").agg(F.count("*").alias("n")).filter("n > 1"),
    "distinct": lambda table: table("lake.lines").select("product", "qty").distinct(),
    "one_each": lambda table: table("lake.lines").select("product").dropDuplicates(["product"]),
    "top": lambda table: table("shop.orders").orderBy(F.desc("total"), "o_id").limit(5).select("o_id", "total"),
    "top_groups": lambda table: (
        table("lake.lines").groupBy("product").agg(F.sum("qty").alias("n")).orderBy(F.desc("n"), "product").limit(3)
    ),
    "top_names": lambda table: (
        table("lake.lines").groupBy("product").count().orderBy(F.desc("count"), "product").select("product").limit(3)
    ),
    "offset": lambda table: table("shop.customers").orderBy("c_id").offset(2).limit(4),
    "best_lines": _best_lines,
    "running": _running,
    "kinds": _kinds,
    "lists": _lists,
    "literals": _literals,
    "logic": _logic,
    "exploded": _exploded,
    "pairs": _pairs,
    "names": _names,
    "by_name": lambda table: (
        table("shop.orders")
        .select("o_id", "total")
        .unionByName(table("lake.lines").select(F.col("price").alias("total"), "o_id", "qty"), allowMissingColumns=True)
    ),
    "subtract": lambda table: table("shop.customers").select("c_id").subtract(table("shop.orders").select("c_id")),
    "except_all": lambda table: table("shop.orders").select("c_id").exceptAll(table("shop.customers").select("c_id")),
    "intersect": lambda table: table("shop.orders").select("c_id").intersect(table("shop.customers").select("c_id")),
    "chained": lambda table: (
        table("lake.lines")
        .withColumn("amount", F.col("qty") * F.col("price"))
        .withColumn("tax", F.round(F.col("amount") * 0.2, 2))
        .withColumns({"o_id": F.col("o_id") + 1, "both": F.col("amount") + F.col("tax")})
        .drop("price")
        .toDF("a", "b", "c", "d", "e", "f")
    ),
    "cast": lambda table: table("shop.orders").select(
        F.col("day").cast("string"), F.col("o_id").cast("int").alias("i")
    ),
    "in_frame": lambda table: table("shop.orders").filter(
        F.col("c_id").isin(table("shop.customers").filter("region = 'r1'").select("c_id"))
    ),
    "above_average": _above_average,
    "with_orders": _with_orders,
    "aliased": _aliased,
    "numbered": _numbered,
    "nested": _nested,
    "global_having": lambda table: table("shop.orders").agg(F.sum("total").alias("n")).filter(F.col("n") > 100),
    "grouping_sets": lambda table: (
        table("shop.customers")
        .groupingSets([["region"], []], "region")
        .agg(F.count("*").alias("n"), F.grouping_id())
        .toDF("region", "n", "id")
    ),
    "unnamed": lambda table: table("shop.orders").groupBy("c_id").agg({"total": "sum", "weight": "avg"}),
    "hinted": lambda table: table("shop.orders").join(F.broadcast(table("shop.customers")), "c_id").repartition(3),
}
