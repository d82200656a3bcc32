"""The plan of a Spark Connect DataFrame becomes a query that one could have written; no server is asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.connect import functions as F
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import SQL, LogicalPlan, Range, Read, SubqueryAlias
from pyspark.sql.connect.window import Window

from strandline.algebra.schema import Column
from strandline.engine.frames import is_frame
from strandline.errors import SqlError
from strandline.sql.ddl import parse_select
from strandline.sql.frames.placeholder import placeholder
from strandline.sql.frames.plan import query_of
from strandline.sql.relations import Relation

TABLES = {
    "shop.orders": ("id bigint", "customer bigint", "amount decimal(10,2)"),
    "shop.customers": ("id bigint", "region string", "tags array<string>"),
    "revenue": ("region string", "total decimal(20,2)"),
    "odd names.order": ("group int", "two words int", "fine int"),
}


class Known:
    """The relations of these tests."""

    def __init__(self) -> None:
        self.known = {
            name: Relation(name, tuple(Column(c.rsplit(" ", 1)[0], c.rsplit(" ", 1)[1]) for c in columns))
            for name, columns in TABLES.items()
        }

    def find(self, name: str) -> Relation | None:
        return self.known.get(name)

    def names(self) -> list[str]:
        return list(self.known)


KNOWN = Known()
SESSION: Any = SimpleNamespace(session_id="none", client=None)


def frame(plan: LogicalPlan) -> Any:
    return DataFrame(plan, SESSION)


def table(name: str) -> Any:
    return frame(SubqueryAlias(SQL(placeholder(KNOWN.known[name])), name.rsplit(".", 1)[-1]))


def query(made: Any) -> str:
    return query_of(made._plan.plan(None), KNOWN)


def of(text: str) -> str:
    """A query as tests write it: every line from its first column on."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


ORDERS, CUSTOMERS, REVENUE = table("shop.orders"), table("shop.customers"), table("revenue")
REGIONS = ORDERS.join(CUSTOMERS, ORDERS["customer"] == CUSTOMERS["id"])
LATEST = Window.partitionBy("customer").orderBy(F.desc("id"))

QUERIES: dict[str, tuple[Any, str]] = {
    "a table": (REVENUE, "SELECT revenue.region, revenue.total\nFROM revenue"),
    "columns and conditions go into one SELECT": (
        ORDERS.filter(F.col("amount") > 10).filter(ORDERS["id"] != 3)
        .select("id", (F.col("amount") * 2).alias("twice")),
        """SELECT orders.id, orders.amount * 2 AS twice
        FROM shop.orders
        WHERE orders.amount > 10 AND NOT orders.id = 3""",
    ),
    "a condition on a computed column": (
        ORDERS.select("id", (F.col("amount") * 2).alias("twice")).filter(F.col("twice") > 5),
        """SELECT t1.id, t1.twice
        FROM (
        SELECT orders.id, orders.amount * 2 AS twice
        FROM shop.orders
        ) AS t1
        WHERE t1.twice > 5""",
    ),
    "a join by a condition": (
        REGIONS.select(ORDERS["id"], CUSTOMERS["id"].alias("customer"), "region"),
        """SELECT orders.id, customers.id AS customer, customers.region
        FROM shop.orders
        JOIN shop.customers ON orders.customer = customers.id""",
    ),
    "a grouping with HAVING": (
        REGIONS.groupBy("region").agg(F.sum("amount").alias("total"), F.count("*").alias("n")).filter("total > 5")
        .filter(F.col("n") > 1),
        """SELECT t1.region, t1.total, t1.n
        FROM (
        SELECT customers.region, sum(orders.amount) AS total, count(*) AS n
        FROM shop.orders
        JOIN shop.customers ON orders.customer = customers.id
        GROUP BY customers.region
        ) AS t1
        WHERE (total > 5) AND t1.n > 1""",
    ),
    "HAVING by columns": (
        ORDERS.groupBy("customer").agg(F.sum("amount").alias("total")).filter(F.col("total") > 5),
        """SELECT orders.customer, sum(orders.amount) AS total
        FROM shop.orders
        GROUP BY orders.customer
        HAVING sum(orders.amount) > 5""",
    ),
    "a condition on groups is one on their rows": (
        ORDERS.groupBy("customer").agg(F.sum("amount").alias("total")).filter(F.col("customer") > 5),
        """SELECT orders.customer, sum(orders.amount) AS total
        FROM shop.orders
        WHERE orders.customer > 5
        GROUP BY orders.customer""",
    ),
    "a condition as text is not taken past a join": (
        CUSTOMERS.select("id").filter("id > 3").join(ORDERS, CUSTOMERS["id"] == ORDERS["customer"]).select("amount"),
        """SELECT orders.amount
        FROM (
        SELECT customers_1.id
        FROM (
        SELECT customers.id
        FROM shop.customers
        ) AS customers_1
        WHERE id > 3
        ) AS customers_2
        JOIN shop.orders ON customers_2.id = orders.customer""",
    ),
    "a join by name keeps one key": (
        CUSTOMERS.join(ORDERS.select(F.col("customer").alias("id"), "amount"), "id", "left"),
        """SELECT customers.id, customers.region, customers.tags, orders.amount
        FROM shop.customers
        LEFT JOIN shop.orders ON customers.id = orders.customer""",
    ),
    "a full join by name merges the keys": (
        CUSTOMERS.select("id").join(ORDERS.select("id", "amount"), "id", "full"),
        """SELECT coalesce(customers.id, orders.id) AS id, orders.amount
        FROM shop.customers
        FULL JOIN shop.orders ON customers.id = orders.id""",
    ),
    "a condition on the right of an outer join stays there": (
        CUSTOMERS.join(ORDERS.filter(F.col("amount") > 1), CUSTOMERS["id"] == ORDERS["customer"], "left")
        .select("region"),
        """SELECT customers.region
        FROM shop.customers
        LEFT JOIN (
        SELECT orders.id, orders.customer, orders.amount
        FROM shop.orders
        WHERE orders.amount > 1
        ) AS orders_1 ON customers.id = orders_1.customer""",
    ),
    "semi and anti joins": (
        CUSTOMERS.select("id").join(ORDERS, CUSTOMERS["id"] == ORDERS["customer"], "semi")
        .join(REVENUE, CUSTOMERS["id"] > REVENUE["total"], "anti"),
        """SELECT customers.id
        FROM shop.customers
        LEFT SEMI JOIN shop.orders ON customers.id = orders.customer
        LEFT ANTI JOIN revenue ON customers.id > revenue.total""",
    ),
    "a table beside itself": (
        ORDERS.alias("a").join(ORDERS.alias("b"), F.col("a.id") == F.col("b.customer")).select("a.id", "b.amount"),
        """SELECT a.id, b.amount
        FROM shop.orders AS a
        JOIN shop.orders AS b ON a.id = b.customer""",
    ),
    "every row with every row": (
        ORDERS.select("id").crossJoin(REVENUE),
        "SELECT orders.id, revenue.region, revenue.total\nFROM shop.orders\nCROSS JOIN revenue",
    ),
    "columns added, replaced, renamed and dropped": (
        ORDERS.withColumn("amount", F.round("amount")).withColumn("k", F.lit(1)).withColumnRenamed("id", "o")
        .drop("customer"),
        "SELECT orders.id AS o, round(orders.amount) AS amount, 1 AS k\nFROM shop.orders",
    ),
    "unions in a chain": (
        ORDERS.select("id").union(CUSTOMERS.select("id")).union(ORDERS.select("customer")),
        """SELECT orders.id
        FROM shop.orders
        UNION ALL
        SELECT customers.id
        FROM shop.customers
        UNION ALL
        SELECT orders_1.customer
        FROM shop.orders AS orders_1""",
    ),
    "sets": (
        ORDERS.select("id").intersect(CUSTOMERS.select("id")).subtract(ORDERS.select("customer")),
        """(SELECT orders.id
        FROM shop.orders
        INTERSECT
        SELECT customers.id
        FROM shop.customers)
        EXCEPT
        SELECT orders_1.customer
        FROM shop.orders AS orders_1""",
    ),
    "distinct rows": (ORDERS.select("customer").distinct(), "SELECT DISTINCT orders.customer\nFROM shop.orders"),
    "one row for each key": (
        ORDERS.dropDuplicates(["customer"]).select("customer", "id"),
        """SELECT orders.customer, first(orders.id) AS id
        FROM shop.orders
        GROUP BY orders.customer""",
    ),
    "an order alone says nothing": (
        REVENUE.orderBy("total"), "SELECT revenue.region, revenue.total\nFROM revenue"
    ),
    "the first rows": (
        ORDERS.orderBy(F.desc("amount"), F.asc_nulls_last("id")).select("id").limit(3),
        """SELECT orders.id
        FROM shop.orders
        ORDER BY orders.amount DESC, orders.id NULLS LAST
        LIMIT 3""",
    ),
    "the first groups": (
        ORDERS.groupBy("customer").count().orderBy(F.desc("count")).offset(1).limit(3),
        """SELECT orders.customer, count(1) AS count
        FROM shop.orders
        GROUP BY orders.customer
        ORDER BY count DESC
        LIMIT 3
        OFFSET 1""",
    ),
    "a condition on the first rows": (
        REVENUE.orderBy("total").limit(3).filter(F.col("region") == "north"),
        """SELECT revenue_1.region, revenue_1.total
        FROM (
        SELECT revenue.region, revenue.total
        FROM revenue
        ORDER BY revenue.total
        LIMIT 3
        ) AS revenue_1
        WHERE revenue_1.region = 'north'""",
    ),
    "a window, and a condition on it": (
        ORDERS.withColumn("n", F.row_number().over(LATEST)).filter(F.col("n") == 1).select("id"),
        """SELECT t1.id
        FROM (
        SELECT
        orders.id,
        orders.customer,
        orders.amount,
        row_number() OVER (PARTITION BY orders.customer ORDER BY orders.id DESC) AS n
        FROM shop.orders
        ) AS t1
        WHERE t1.n = 1""",
    ),
    "rollup": (
        ORDERS.rollup("customer", (F.col("id") % 2).alias("odd")).agg(F.sum("amount").alias("total")),
        """SELECT orders.customer, orders.id % 2 AS odd, sum(orders.amount) AS total
        FROM shop.orders
        GROUP BY ROLLUP (orders.customer, orders.id % 2)""",
    ),
    "rows of lists": (
        CUSTOMERS.select("id", F.explode("tags").alias("tag")),
        "SELECT customers.id, explode(customers.tags) AS tag\nFROM shop.customers",
    ),
    "rows of lists whose elements are not shown": (
        CUSTOMERS.select("id", F.explode("tags").alias("tag")).select("id"),
        """SELECT t1.id
        FROM (
        SELECT customers.id, explode(customers.tags) AS tag
        FROM shop.customers
        ) AS t1""",
    ),
    "rows of lists whose elements are shown twice": (
        CUSTOMERS.select(F.call_function("explode", "tags").alias("tag")).select("tag", F.col("tag").alias("again")),
        """SELECT t1.tag, t1.tag AS again
        FROM (
        SELECT explode(customers.tags) AS tag
        FROM shop.customers
        ) AS t1""",
    ),
    "a choice of groups by chance": (
        ORDERS.groupBy("customer").count().filter(F.rand(1) < 0.5),
        """SELECT orders.customer, count(1) AS count
        FROM shop.orders
        GROUP BY orders.customer
        HAVING rand(1) < 0.5D""",
    ),
    "a choice of rows by chance, before a join": (
        ORDERS.filter(F.rand(1) < 0.5).join(CUSTOMERS, ORDERS["customer"] == CUSTOMERS["id"]).select("region"),
        """SELECT customers.region
        FROM (
        SELECT orders.id, orders.customer, orders.amount
        FROM shop.orders
        WHERE rand(1) < 0.5D
        ) AS orders_1
        JOIN shop.customers ON orders_1.customer = customers.id""",
    ),
    "a generator with two columns": (
        CUSTOMERS.select("id", F.posexplode("tags").alias("place", "tag")).filter(F.col("place") > 0),
        """SELECT t1.id, t1.place, t1.tag
        FROM (
        SELECT customers.id, posexplode(customers.tags) AS (place, tag)
        FROM shop.customers
        ) AS t1
        WHERE t1.place > 0""",
    ),
    "a DataFrame as a list of values": (
        ORDERS.filter(F.col("customer").isin(CUSTOMERS.select("id"))).select("id"),
        """SELECT orders.id
        FROM shop.orders
        WHERE orders.customer IN (
        SELECT customers.id
        FROM shop.customers
        )""",
    ),
    "names that must be quoted": (
        table("odd names.order").select("group", "`two words`", F.col("fine").alias("select")),
        "SELECT `order`.`group`, `order`.`two words`, `order`.fine AS `select`\nFROM `odd names`.`order`",
    ),
    "text as it was given": (
        ORDERS.selectExpr("id", "to_char(amount, '999D99') AS shown").filter("shown <> ''"),
        """SELECT t1.id, t1.shown
        FROM (
        SELECT id, to_char(amount, '999D99') AS shown
        FROM shop.orders
        ) AS t1
        WHERE shown <> ''""",
    ),
    "hints and partitions": (
        ORDERS.hint("broadcast").repartition(3).coalesce(1).select("id"), "SELECT orders.id\nFROM shop.orders"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "expected"), QUERIES.values(), ids=QUERIES.keys())
def test_a_dataframe_becomes_a_query(made: Any, expected: str) -> None:
    text = query(made)
    assert unindented(text) == of(expected)
    parse_select(text)
    assert query(made) == text


AMOUNT, NUMBER = F.col("amount"), F.col("id")

EXPRESSIONS: dict[str, Any] = {
    "(orders.id + 1) * 2": (NUMBER + 1) * 2,
    "orders.id + 1 - (2 - orders.id)": NUMBER + 1 - (2 - NUMBER),
    "orders.id / (orders.id * 2)": NUMBER / (NUMBER * 2),
    "orders.id = 1 AND orders.amount > 2 OR NOT orders.id = 3": (NUMBER == 1) & (AMOUNT > 2) | ~(NUMBER == 3),
    "orders.id = 1 AND (orders.amount > 2 OR orders.id IS NULL)": (NUMBER == 1) & ((AMOUNT > 2) | NUMBER.isNull()),
    "orders.id >= 1 AND orders.id <= 3": NUMBER.between(1, 3),
    "orders.id IN (1, 2)": NUMBER.isin(1, 2),
    "(orders.id = 1) = (orders.amount = 2)": (NUMBER == 1) == (AMOUNT == 2),
    "orders.id <=> -1": NUMBER.eqNullSafe(-1),
    "orders.id & (orders.id | 4)": NUMBER.bitwiseAND(NUMBER.bitwiseOR(4)),
    "negative(orders.id)": -NUMBER,
    "CASE WHEN orders.id > 1 THEN 'a' ELSE 'b' END": F.when(NUMBER > 1, "a").otherwise("b"),
    "CAST(orders.amount AS string) LIKE 'a%'": AMOUNT.cast("string").like("a%"),
    "TRY_CAST(orders.id AS int)": NUMBER.try_cast("int"),
    "to_date('2026', 'yyyy')": F.to_date(F.lit("2026"), "yyyy"),
    "count(DISTINCT orders.id, orders.amount)": F.count_distinct("id", "amount"),
    "transform(array(orders.id), x -> x + 1)": F.transform(F.array("id"), lambda x: x + 1),
    "aggregate(array(1), 0, (x, y) -> x + y, x -> x * 2)": F.aggregate(
        F.array(F.lit(1)), F.lit(0), lambda a, b: a + b, lambda a: a * 2
    ),
    "transform(array(1), x -> transform(array(x), x1 -> x1 + x))": F.transform(
        F.array(F.lit(1)), lambda x: F.transform(F.array(x), lambda y: y + x)
    ),
    "array(orders.id)[0]": F.array("id")[0],
    "named_struct('a', orders.id)['a']": F.named_struct(F.lit("a"), "id")["a"],
    "struct(orders.id AS a, orders.amount AS amount)": F.struct(NUMBER.alias("a"), "amount"),
    "sum(orders.amount) OVER (PARTITION BY orders.customer ORDER BY orders.id DESC"
    " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)": F.sum("amount").over(LATEST.rowsBetween(-2, 1)),
    "sum(orders.amount) OVER (PARTITION BY orders.customer ORDER BY orders.id DESC"
    " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)": F.sum("amount").over(
        LATEST.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    ),
    "5000000000L": F.lit(5_000_000_000),
    "1.5D": F.lit(1.5),
    "CAST('NaN' AS double)": F.lit(float("nan")),
    "true": F.lit(True),
    "NULL": F.lit(None),
    "CAST('20.50' AS decimal(10,2))": F.lit(Decimal("20.50")),
    "DATE '2026-01-31'": F.lit(date(2026, 1, 31)),
    "TIMESTAMP '2026-01-31 12:30:00.000005Z'": F.lit(datetime(2026, 1, 31, 12, 30, 0, 5, tzinfo=UTC)),
    "INTERVAL '1 02:00:00.000000' DAY TO SECOND": F.lit(timedelta(days=1, hours=2)),
    "X'00ff'": F.lit(b"\x00\xff"),
    "'it\\'s \\\\ \\u0024{x}\\n'": F.lit("it's \\ ${x}\n"),
}


@pytest.mark.parametrize(("expected", "made"), EXPRESSIONS.items(), ids=EXPRESSIONS.keys())
def test_an_expression_becomes_text(expected: str, made: Any) -> None:
    text = query(ORDERS.select(made.alias("made")))
    assert text == f"SELECT {expected} AS made\nFROM shop.orders" or text.startswith(f"SELECT\n  {expected} AS made\n")
    parse_select(text)


REFUSED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "rows of the program": (lambda: frame(Range(0, 3, 1)), "DATAFRAME_NOT_SQL", "range"),
    "tables of Spark's catalog": (lambda: frame(Read("shop.orders")), "DATAFRAME_NOT_SQL", 'table("name")'),
    "other queries": (lambda: frame(SQL("SELECT 1")), "DATAFRAME_NOT_SQL", "SQL text itself"),
    "a sample": (lambda: ORDERS.sample(0.5, 3), "DATAFRAME_NOT_SQL", "sample"),
    "dropna": (lambda: ORDERS.dropna(), "DATAFRAME_NOT_SQL", "isNotNull"),
    "pivot": (lambda: ORDERS.groupBy("id").pivot("customer", [1]).agg(F.sum("amount")), "DATAFRAME_NOT_SQL", "pivot"),
    "a group for a number": (lambda: ORDERS.groupBy(F.lit(1)).count(), "DATAFRAME_NOT_SQL", "group by a column"),
    "withField": (lambda: ORDERS.select(F.struct("id").withField("a", F.lit(1))), "DATAFRAME_NOT_SQL", "struct(...)"),
    "a comment in a text": (lambda: ORDERS.filter("id > 1 -- really"), "DATAFRAME_NOT_SQL", "one line"),
    "a column that is not there": (lambda: ORDERS.select("ammount"), "UNKNOWN_COLUMN", "it has: amount"),
    "a column of another DataFrame": (lambda: ORDERS.select(CUSTOMERS["id"]), "UNKNOWN_COLUMN", "id"),
    "a column that was replaced": (
        lambda: ORDERS.withColumn("id", F.lit(1)).select(ORDERS["id"]), "UNKNOWN_COLUMN", "id"
    ),
    "a name of two columns": (lambda: REGIONS.select("id"), "AMBIGUOUS_COLUMN", "2 columns"),
    "one DataFrame on both sides": (
        lambda: ORDERS.join(ORDERS, ORDERS["id"] == ORDERS["customer"]), "AMBIGUOUS_COLUMN", "alias"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "code", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_sql_cannot_say_is_refused_by_name(make: Callable[[], Any], code: str, words: str) -> None:
    with pytest.raises(SqlError) as refusal:
        query(make())
    assert refusal.value.code == code
    assert words in refusal.value.message


def test_a_connect_dataframe_is_one() -> None:
    assert is_frame(ORDERS)
    assert not is_frame("SELECT 1")
