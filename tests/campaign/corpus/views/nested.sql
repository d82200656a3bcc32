-- CTEs, derived tables, generators, tables of values.

-- name: cte_once
-- strategy: incremental
WITH x AS (SELECT k, a FROM l.r WHERE b > 0) SELECT x.k, s.k AS sk FROM x JOIN l.s ON s.a = x.a

-- name: cte_twice
-- strategy: incremental
-- tested
WITH x AS (SELECT a, count(*) AS n FROM l.r GROUP BY a) SELECT p.a, q.n FROM x p JOIN x q ON p.n = q.n

-- name: cte_of_cte
-- strategy: incremental
WITH x AS (SELECT a, b FROM l.r), y (c) AS (SELECT a FROM x WHERE b > 0) SELECT c, count(*) AS n FROM y GROUP BY c

-- name: cte_shadows_table
-- strategy: incremental
WITH r AS (SELECT k FROM l.s) SELECT r.k FROM r

-- name: derived_four_deep
-- strategy: affected
SELECT n, count(*) AS c FROM (SELECT a, max(n) AS n FROM (SELECT a, b, count(*) AS n FROM
  (SELECT a, b FROM (SELECT * FROM l.r WHERE k > 2) w) x GROUP BY a, b) y GROUP BY a) z GROUP BY n

-- name: lateral_view
-- strategy: incremental
SELECT r.k, e.x FROM l.r LATERAL VIEW explode(array(a, b)) e AS x WHERE e.x IS NOT NULL

-- name: lateral_view_outer
-- strategy: incremental
-- tested
SELECT k, e.tag FROM l.nest LATERAL VIEW OUTER explode(tags) e AS tag

-- name: lateral_view_positions
-- strategy: incremental
SELECT k, pos, x FROM l.nest LATERAL VIEW posexplode(xs) e AS pos, x

-- name: lateral_views
-- strategy: incremental
SELECT k, x, tag FROM l.nest LATERAL VIEW explode(xs) e AS x LATERAL VIEW explode(tags) f AS tag

-- name: lateral_view_of_map
-- strategy: incremental
SELECT k, key, value FROM l.nest LATERAL VIEW explode(m) e AS key, value

-- name: explode_in_select
-- strategy: incremental
SELECT k, explode(xs) AS x FROM l.nest

-- name: explode_outer_in_select
-- strategy: incremental
SELECT k, explode_outer(tags) AS tag FROM l.nest WHERE k > 1

-- name: inline_in_select
-- strategy: incremental
SELECT k, inline(ps) FROM l.nest

-- name: posexplode_in_select
-- strategy: incremental
SELECT k, posexplode(xs) AS (place, x) FROM l.nest

-- name: lateral_explode
-- strategy: incremental
SELECT n.k, e.x FROM l.nest n, LATERAL explode(n.xs) AS e(x)

-- name: lateral_subquery
-- strategy: full GENERATOR
SELECT r.k, x.sk FROM l.r JOIN LATERAL (SELECT s.k AS sk FROM l.s WHERE s.a = r.a) x

-- name: lateral_aggregate
-- strategy: full GENERATOR
SELECT r.k, x.n FROM l.r, LATERAL (SELECT count(*) AS n FROM l.s WHERE s.a = r.a) x

-- name: grouped_explode
-- strategy: incremental
SELECT tag, count(*) AS n FROM l.nest LATERAL VIEW explode(tags) e AS tag GROUP BY tag

-- name: values_joined
-- strategy: incremental
SELECT r.k, v.label FROM l.r JOIN (VALUES (0, 'zero'), (1, 'one')) AS v(x, label) ON r.a = v.x

-- name: values_alone
-- strategy: incremental
SELECT v.x, v.y FROM VALUES (1, 'a'), (2, NULL), (2, NULL) AS v(x, y)

-- name: no_from
-- strategy: incremental
SELECT 1 AS one, 'a' AS letter

-- name: union_with_no_from
-- strategy: incremental
SELECT a FROM l.r UNION ALL SELECT 99

-- name: left_join_values
-- strategy: affected
SELECT v.x, r.k FROM (VALUES (0), (1), (7)) AS v(x) LEFT JOIN l.r ON r.a = v.x

-- name: from_first
-- strategy: incremental
FROM l.r SELECT k, a WHERE a > 0

-- name: lateral_alias
-- strategy: incremental
SELECT k, a + 1 AS next, next * 2 AS twice FROM l.r
