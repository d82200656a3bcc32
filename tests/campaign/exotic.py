"""Exotic SQL: what Spark, or another engine, or nobody understands; and statements that are deep, wide or long."""

from __future__ import annotations

from collections.abc import Iterator

EXOTIC = (
    # Clauses
    "SELECT * FROM l.r PIVOT (sum(d) AS s, count(*) AS n FOR (a, t) IN ((1, 'x') AS one, (2, 'y') AS two))",
    "SELECT * FROM l.r UNPIVOT (v FOR c IN (a, b))",
    "SELECT * FROM l.r UNPIVOT INCLUDE NULLS ((v, w) FOR c IN ((a, b) AS ab, (b, a) AS ba))",
    "SELECT * FROM l.r TABLESAMPLE (5 ROWS)",
    "SELECT * FROM l.r TABLESAMPLE (BUCKET 1 OUT OF 4 ON a)",
    "SELECT k FROM l.r TABLESAMPLE (10 PERCENT) REPEATABLE (42) AS x",
    "SELECT r.k, x.n FROM l.r, LATERAL (SELECT count(*) AS n FROM l.s WHERE s.a = r.a) AS x",
    "SELECT r.k, x.b FROM l.r LEFT JOIN LATERAL (SELECT b FROM l.s WHERE s.a = r.a ORDER BY k LIMIT 1) AS x ON true",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5) SELECT x FROM n",
    "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n LIMIT 3) SELECT x FROM n",
    "SELECT /*+ BROADCAST(s), MERGE(r) */ r.k FROM l.r JOIN l.s USING (a)",
    "SELECT /*+ REPARTITION(3, a) */ k FROM l.r",
    "SELECT k FROM l.r QUALIFY row_number() OVER (PARTITION BY a ORDER BY k) = 1",
    "SELECT k, sum(b) OVER w AS s, avg(b) OVER (w ORDER BY k) AS v FROM l.r WINDOW w AS (PARTITION BY a)",
    "FROM l.r |> WHERE a > 1 |> AGGREGATE count(*) AS n GROUP BY t |> ORDER BY n |> LIMIT 3",
    "FROM l.r |> SELECT k, a |> EXTEND a + 1 AS b |> SET a = 2 |> DROP k |> AS z",
    "SELECT * FROM l.r VERSION AS OF 1",
    "SELECT * FROM l.r TIMESTAMP AS OF '2024-01-01'",
    "SELECT * FROM l.r FOR SYSTEM_VERSION AS OF 1",
    "SELECT * FROM `l`.`r@v1`",
    "SELECT TRANSFORM (a, b) USING 'cat' AS (x, y) FROM l.r",
    "SELECT TRANSFORM (a) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' USING 'sed s/a/b/' AS (x STRING) FROM l.r",
    "FROM l.r MAP k USING 'cat' AS (z)",
    "SELECT a FROM l.r CLUSTER BY a",
    "SELECT a FROM l.r DISTRIBUTE BY a SORT BY b",
    "SELECT ALL a FROM l.r",
    "SELECT DISTINCT ON (a) a, b FROM l.r",
    "SELECT TOP 3 a FROM l.r",
    "SELECT a FROM l.r FETCH FIRST 3 ROWS ONLY",
    "SELECT a FROM l.r LIMIT ALL",
    "SELECT a FROM l.r LIMIT 1 + 1",
    "SELECT a FROM l.r LIMIT -1",
    "SELECT a FROM l.r ORDER BY ALL DESC",
    "SELECT a FROM l.r ORDER BY 99",
    "SELECT count(*) FROM l.r GROUP BY GROUPING SETS (ROLLUP (a, b), CUBE (t), ())",
    "SELECT a FROM l.r GROUP BY a WITH TOTALS",
    "SELECT * EXCEPT (a, b) FROM l.r",
    "SELECT r.* EXCEPT (a), s.* EXCEPT (k, b, t, d) FROM l.r JOIN l.s ON r.k = s.k",
    "SELECT * REPLACE (a + 1 AS a) FROM l.r",
    "SELECT struct(*) AS s, array(*) AS x FROM l.r",
    "SELECT count(r.*) AS n FROM l.r",
    "SELECT st.* FROM l.nest",
    "SELECT explode(m) FROM l.nest",
    "SELECT stack(2, a, 1, b, 2) AS (x, y) FROM l.r",
    "SELECT inline(ps) FROM l.nest LATERAL VIEW OUTER explode(xs) e AS x",
    "SELECT json_tuple(t, 'a', 'b') FROM l.r",
    "SELECT window(ts, '1 hour').start AS w, count(*) AS n FROM l.kinds GROUP BY window(ts, '1 hour')",
    "SELECT * FROM range(10)",
    "SELECT * FROM explode(array(1, 2))",
    "SELECT * FROM TABLE(range(3))",
    "SELECT * FROM IDENTIFIER('l.r')",
    "SELECT IDENTIFIER('a') FROM l.r",
    "SELECT :p AS p, ? AS q FROM l.r",
    "SELECT * FROM parquet.`/nowhere`",
    "SELECT * FROM a.b.c.d.e",
    "SELECT l.r.k FROM l.r, l.r AS r",
    "SELECT (SELECT 1, 2) AS x FROM l.r",
    "SELECT k FROM l.r WHERE (a, b) = (SELECT 1, 2)",
    "SELECT k FROM l.r WHERE a > ALL (SELECT a FROM l.s)",
    "SELECT k FROM l.r WHERE a = ANY (SELECT a FROM l.s)",
    "SELECT k FROM l.r WHERE a LIKE ALL ('a', 'b') OR t LIKE SOME ('x')",
    "SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s WHERE b IN (SELECT b FROM l.t WHERE t.a = r.a))",
    "SELECT sum(sum(a)) FROM l.r",
    "SELECT sum(a) OVER (PARTITION BY sum(b)) FROM l.r GROUP BY a",
    "SELECT a FROM l.r HAVING a > 1",
    "SELECT a FROM l.r WHERE sum(a) > 1",
    "SELECT a, rank() OVER (ORDER BY a) FROM l.r WHERE rank() OVER (ORDER BY a) = 1",
    "SELECT sum(DISTINCT a) FILTER (WHERE b > 0) OVER (PARTITION BY t) AS s FROM l.r",
    "SELECT k FROM l.r SEMI JOIN l.s USING (a)",
    "SELECT k FROM l.r ANTI JOIN l.s",
    "SELECT r.k FROM l.r CROSS JOIN l.s ON r.a = s.a",
    "SELECT r.k FROM l.r ASOF JOIN l.s MATCH_CONDITION (r.a >= s.a)",
    "SELECT r.k FROM l.r NATURAL ANTI JOIN l.s",
    "SELECT * FROM l.r NATURAL JOIN l.s",
    "SELECT k FROM (l.r)",
    "SELECT k FROM ((SELECT k FROM l.r) UNION (SELECT k FROM l.s)) LIMIT 3",
    "TABLE l.r",
    "VALUES (1, 2), (3)",
    "VALUES",
    "SELECT * FROM VALUES (1), ('a') AS v(x)",
    "SELECT",
    "SELECT FROM l.r",
    "SELECT 1",
    "SELECT NULL",
    "SELECT k FROM l.r UNION SELECT k, a FROM l.s",
    "SELECT k FROM l.r UNION ALL BY NAME SELECT a FROM l.s",
    "SELECT k FROM l.r INTERSECT ALL SELECT k FROM l.s EXCEPT DISTINCT SELECT k FROM l.t MINUS SELECT a FROM l.r",
    "WITH x AS (SELECT 1) SELECT * FROM x, x AS y",
    "WITH x AS (SELECT * FROM y), y AS (SELECT 1) SELECT * FROM x",
    "WITH x(a, b) AS (SELECT k FROM l.r) SELECT * FROM x",
    "WITH x AS (WITH y AS (SELECT k FROM l.r) SELECT * FROM y) SELECT * FROM x",
    "SELECT variant_get(parse_json(t), '$.a', 'int') AS v, parse_json(t):a.b::string AS w FROM l.r",
    "SELECT t COLLATE UNICODE_CI AS t FROM l.r",
    "SELECT CAST(ts AS TIMESTAMP_NTZ) AT TIME ZONE 'UTC' FROM l.kinds",
    "SELECT transform(xs, (x, i) -> x + i), aggregate(xs, 0, (s, x) -> s + x, s -> -s) FROM l.nest",
    "SELECT named_arguments(a => 1, b => 2) FROM l.r",
    "SELECT mask(t, lowerChar => 'q') FROM l.r",
    "SELECT {'a': 1} FROM l.r",
    "SELECT INTERVAL '1-2' YEAR TO MONTH, INTERVAL 3 DAYS 4 HOURS FROM l.r",
    "SELECT current_date, current_user, session_user(), now() FROM l.r",
    "SELECT X'0G' FROM l.r",
    "SELECT 1e999, 99999999999999999999999999999999999999999, 0x1F FROM l.r",
    "SELECT 'a' 'b' \"c\" FROM l.r",
    "SELECT 'unclosed FROM l.r",
    "SELECT `unclosed FROM l.r",
    "SELECT /* unclosed FROM l.r",
    "SELECT k -- the end",
    "SELECT k FROM l.r; SELECT a FROM l.s",
    "SELECT k FROM l.r;;",
    ";",
    "",
    "\x00",
    "SELECT '\x00' FROM l.r",
    "SELECT \ud83d FROM l.r".encode("utf-8", "replace").decode(),
    "\uff33\uff25\uff2c\uff25\uff23\uff34 k FROM l.r",
    "SELECT\u00a0k\u2003FROM\u3000l.r",
    "SELECT k AS 名前, a AS größe, b AS `🎈` FROM l.r WHERE t = '名前'",
    "SELECT 名前, größe FROM l.`order`",
    "/*a*/SELECT/*b*/k/*c*/,/*d*/a/*e*/FROM/*f*/l/*g*/./*h*/r/*i*/WHERE/*j*/a/*k*/>/*l*/1--m\n--n\n/*o*/",
    "SELECT /* /* nested */ */ k FROM l.r",
    # Statements that are none of ours
    "INSERT INTO l.r VALUES (1)",
    "DELETE FROM l.r",
    "MERGE INTO l.r USING l.s ON r.k = s.k WHEN MATCHED THEN DELETE",
    "CREATE TABLE x AS SELECT 1",
    "CREATE MATERIALIZED VIEW v AS",
    "CREATE MATERIALIZED VIEW v AS DELETE FROM l.r",
    "CREATE MATERIALIZED VIEW `a``b` AS SELECT 1 AS x",
    "CREATE MATERIALIZED VIEW v REFRESH POLICY NEVER AS SELECT k FROM l.r",
    "CREATE MATERIALIZED VIEW v COMMENT 'x' COMMENT 'y' CLUSTER BY () AS SELECT k FROM l.r",
    "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('a' = 'b', ) AS SELECT k FROM l.r",
    "EXPLAIN",
    "EXPLAIN EXPLAIN SELECT 1",
    "EXPLAIN CREATE",
    "DROP MATERIALIZED VIEW",
    "REFRESH MATERIALIZED VIEW v FULL FULL",
    "SET x = 1",
    "BEGIN SELECT 1; END",
)  # fmt: skip
"""Syntax that Spark, or another engine, or nobody has."""


def enormous() -> Iterator[str]:
    """Statements that are deep, wide or long."""
    yield f"SELECT {'(' * 200}k{')' * 200} AS k FROM l.r"
    yield f"SELECT k FROM l.r WHERE {'(' * 200}a > 1{')' * 200}"
    yield "SELECT k FROM " + "(SELECT k FROM " * 60 + "l.r" + ")" * 60
    yield f"SELECT {'-' * 1}{'- ' * 100}a AS x FROM l.r"
    yield f"SELECT k FROM l.r WHERE {'NOT ' * 300}a > 1"
    yield "SELECT " + ", ".join(f"a + {n} AS c{n}" for n in range(1000)) + " FROM l.r"
    yield "SELECT a, " + ", ".join(f"sum(b + {n}) AS c{n}" for n in range(100)) + " FROM l.r GROUP BY a"
    yield "SELECT CASE " + " ".join(f"WHEN a = {n} THEN '{n}'" for n in range(500)) + " END AS c FROM l.r"
    yield "SELECT k FROM l.r WHERE " + " OR ".join(f"a = {n}" for n in range(400))
    yield "SELECT k FROM l.r WHERE " + " AND ".join(f"a <> {n}" for n in range(400))
    yield "SELECT k FROM l.r WHERE a IN (" + ", ".join(str(n) for n in range(5000)) + ")"
    yield "SELECT k, '" + "x" * 100_000 + "' AS t FROM l.r"
    yield "SELECT k /* " + "y" * 100_000 + " */ FROM l.r"
    yield " UNION ALL ".join(f"SELECT k FROM l.r WHERE a = {n}" for n in range(100))
    yield (
        "WITH "
        + ", ".join(f"c{n} AS (SELECT k FROM {f'c{n - 1}' if n else 'l.r'})" for n in range(60))
        + (" SELECT k FROM c59")
    )
    yield "SELECT x0.k FROM " + ", ".join(f"l.r x{n}" for n in range(20)) + " WHERE x0.k = x19.k"
    yield f"SELECT {'f(' * 150}a{')' * 150} AS x FROM l.r"
    yield f"SELECT a AS `{'n' * 5000}` FROM l.r"
