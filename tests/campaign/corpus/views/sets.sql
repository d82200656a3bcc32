-- DISTINCT and set operations.

-- name: distinct_rows
-- strategy: incremental
-- tested
SELECT DISTINCT a, t FROM l.bag

-- name: distinct_join
-- strategy: incremental
SELECT DISTINCT r.a, s.b FROM l.r JOIN l.s ON r.a = s.a

-- name: distinct_of_groups
-- strategy: incremental
SELECT DISTINCT count(*) AS n FROM l.r GROUP BY a

-- name: distinct_expressions
-- strategy: incremental
SELECT DISTINCT upper(t) AS u, a % 2 AS odd FROM l.r

-- name: union_all
-- strategy: incremental
SELECT a, t FROM l.r UNION ALL SELECT b, t FROM l.s

-- name: union_all_of_itself
-- strategy: incremental
SELECT a, t FROM l.bag UNION ALL SELECT a, t FROM l.bag WHERE a > 0

-- name: union_of_types
-- strategy: incremental
SELECT a AS x FROM l.r UNION ALL SELECT d FROM l.s UNION ALL SELECT k FROM l.t

-- name: union_distinct
-- strategy: incremental
-- tested
SELECT a, b FROM l.r UNION SELECT a, b FROM l.s

-- name: union_of_three
-- strategy: incremental
SELECT a FROM l.r UNION SELECT b FROM l.s UNION ALL SELECT a FROM l.t

-- name: grouped_union
-- strategy: incremental
SELECT x, count(*) AS n FROM (SELECT a AS x FROM l.r UNION ALL SELECT b FROM l.s) u GROUP BY x

-- name: union_of_groups
-- strategy: affected
SELECT a, count(*) AS n FROM l.r GROUP BY a UNION ALL SELECT b, max(a) FROM l.s GROUP BY b

-- name: intersect_distinct
-- strategy: incremental
-- tested
SELECT a, b FROM l.r INTERSECT SELECT a, b FROM l.s

-- name: intersect_all
-- strategy: incremental
SELECT a FROM l.r INTERSECT ALL SELECT a FROM l.s

-- name: except_distinct
-- strategy: incremental
SELECT a, t FROM l.r EXCEPT SELECT a, t FROM l.s

-- name: except_all
-- strategy: incremental
-- tested
SELECT a FROM l.r EXCEPT ALL SELECT b FROM l.s

-- name: except_all_of_duplicates
-- strategy: incremental
SELECT a, t FROM l.bag EXCEPT ALL SELECT a, t FROM l.r

-- name: minus_rows
-- strategy: incremental
SELECT a FROM l.r MINUS SELECT a FROM l.s

-- name: set_operations_nested
-- strategy: incremental
(SELECT a FROM l.r UNION SELECT a FROM l.s) EXCEPT (SELECT b FROM l.t INTERSECT SELECT a FROM l.t)

-- name: join_of_set_operation
-- strategy: incremental
SELECT x.a, t.k FROM (SELECT a FROM l.r INTERSECT ALL SELECT a FROM l.s) x JOIN l.t ON t.a = x.a
