-- ROLLUP, CUBE and GROUPING SETS.

-- name: rollup
-- strategy: incremental
-- tested
SELECT a, t, count(*) AS n, sum(d) AS s FROM l.r GROUP BY ROLLUP (a, t)

-- name: with_rollup
-- strategy: incremental
SELECT a, t, sum(d) AS s FROM l.r GROUP BY a, t WITH ROLLUP

-- name: cube
-- strategy: incremental
SELECT a, b, count(*) AS n FROM l.r GROUP BY CUBE (a, b)

-- name: cube_with_minima
-- strategy: affected
SELECT a, t, min(d) AS lo, count(*) AS n FROM l.r GROUP BY a, t WITH CUBE

-- name: grouping_sets
-- strategy: incremental
-- tested
SELECT a, t, sum(b) AS s FROM l.r GROUP BY GROUPING SETS ((a), (t), ())

-- name: grouping_sets_repeated
-- strategy: incremental
SELECT a, count(*) AS n FROM l.r GROUP BY GROUPING SETS ((a), (a), ())

-- name: grouping_function
-- strategy: incremental
SELECT a, t, grouping(a) AS ga, grouping_id(a, t) AS gid, count(*) AS n FROM l.r GROUP BY ROLLUP (a, t)

-- name: grouping_beside_keys
-- strategy: incremental
SELECT a, b, t, count(*) AS n FROM l.r GROUP BY a, ROLLUP (b, t)

-- name: grouping_having
-- strategy: incremental
SELECT a, t, count(*) AS n FROM l.r GROUP BY CUBE (a, t) HAVING count(*) > 1 AND grouping(t) = 0

-- name: grouping_of_join
-- strategy: incremental
SELECT r.a, s.t, sum(s.d) AS x FROM l.r JOIN l.s ON r.a = s.a GROUP BY GROUPING SETS ((r.a, s.t), (s.t))

-- name: rollup_of_expression
-- strategy: incremental
SELECT a % 2 AS p, count(*) AS n FROM l.r GROUP BY ROLLUP (a % 2)

-- name: rollup_of_itself_as_argument
-- strategy: incremental
SELECT a, sum(a) AS s, count(a) AS n FROM l.r GROUP BY ROLLUP (a)

-- name: rollup_distinct_counts
-- strategy: affected
SELECT a, count(DISTINCT b) AS n FROM l.r GROUP BY ROLLUP (a)

-- name: rollup_of_key_and_expression
-- strategy: incremental
SELECT a, a + 1 AS b, count(*) AS n, sum(k) AS s FROM l.r GROUP BY ROLLUP (a, a + 1)

-- name: grouping_sets_of_expressions
-- strategy: affected
SELECT a, upper(t) AS u, a + b AS c, max(d) AS m FROM l.r GROUP BY GROUPING SETS ((a, upper(t)), (a + b), (a, a + b), ())
