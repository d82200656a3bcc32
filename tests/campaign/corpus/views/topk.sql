-- ORDER BY with LIMIT and OFFSET.

-- name: top_rows
-- strategy: affected
-- tested
SELECT k, d FROM l.r ORDER BY d DESC NULLS LAST, k LIMIT 5

-- name: top_with_offset
-- strategy: affected
SELECT k, a FROM l.r ORDER BY k LIMIT 3 OFFSET 2

-- name: offset_only
-- strategy: affected
SELECT k FROM l.r ORDER BY k OFFSET 4

-- name: top_of_more_than_there_are
-- strategy: affected
SELECT k FROM l.r ORDER BY k LIMIT 1000

-- name: top_none
-- strategy: affected
SELECT k FROM l.r ORDER BY k LIMIT 0

-- name: top_groups
-- strategy: affected
SELECT a, sum(d) AS s FROM l.r GROUP BY a ORDER BY s DESC NULLS LAST, a LIMIT 2

-- name: top_of_join
-- strategy: affected
SELECT r.k, s.k AS sk FROM l.r JOIN l.s ON r.a = s.a ORDER BY r.k, s.k LIMIT 4

-- name: top_inside
-- strategy: affected
SELECT a, count(*) AS n FROM (SELECT k, a FROM l.r ORDER BY k DESC LIMIT 6) x GROUP BY a

-- name: join_with_top
-- strategy: affected
SELECT x.k, s.k AS sk FROM (SELECT k, a FROM l.r ORDER BY k LIMIT 4) x JOIN l.s ON s.a = x.a

-- name: top_with_ties_in_order
-- strategy: affected
SELECT a FROM l.bag ORDER BY a NULLS FIRST LIMIT 4

-- name: ordered_only
-- strategy: incremental
SELECT k, a FROM l.r ORDER BY a, k

-- name: top_of_union
-- strategy: affected
SELECT k FROM l.r UNION ALL SELECT k FROM l.s ORDER BY k DESC LIMIT 3

-- name: top_distinct
-- strategy: affected
SELECT DISTINCT a FROM l.r ORDER BY a DESC NULLS LAST LIMIT 2
