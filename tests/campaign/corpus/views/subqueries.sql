-- EXISTS, IN, their negations, and queries that stand for a value.

-- name: with_exists
-- strategy: affected
SELECT k, a FROM l.r WHERE EXISTS (SELECT 1 FROM l.s WHERE s.a = r.a AND s.b <> r.b)

-- name: with_not_exists
-- strategy: affected
-- tested
SELECT k, a FROM l.r WHERE NOT EXISTS (SELECT * FROM l.s WHERE s.a = r.a)

-- name: exists_uncorrelated
-- strategy: affected
SELECT k FROM l.r WHERE EXISTS (SELECT 1 FROM l.s WHERE s.t = 'z')

-- name: two_exists
-- strategy: affected
SELECT k FROM l.r WHERE EXISTS (SELECT 1 FROM l.s WHERE s.a = r.a) AND NOT EXISTS (SELECT 1 FROM l.t WHERE t.b = r.b)

-- name: grouped_exists
-- strategy: affected
SELECT a, count(*) AS n FROM l.r WHERE EXISTS (SELECT 1 FROM l.s WHERE s.a = r.a) GROUP BY a

-- name: in_query
-- strategy: affected
SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s WHERE b > 0) AND t = 'x'

-- name: in_pair
-- strategy: affected
SELECT k FROM l.r WHERE (a, b) IN (SELECT a, b FROM l.s)

-- name: in_correlated
-- strategy: affected
SELECT k FROM l.r WHERE a IN (SELECT s.b FROM l.s WHERE s.t = r.t)

-- name: not_in_query
-- strategy: affected
-- tested
SELECT k FROM l.r WHERE a NOT IN (SELECT b FROM l.s WHERE t = 'y')

-- name: not_in_without_nulls
-- strategy: affected
SELECT k FROM l.r WHERE a NOT IN (SELECT b FROM l.s WHERE b IS NOT NULL)

-- name: not_in_correlated
-- strategy: affected
SELECT k FROM l.r WHERE a NOT IN (SELECT s.b FROM l.s WHERE s.t = r.t)

-- name: not_in_pair
-- strategy: full SUBQUERY
SELECT k FROM l.r WHERE (a, b) NOT IN (SELECT a, b FROM l.s WHERE t = 'x')

-- name: in_groups
-- strategy: affected
SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s GROUP BY a HAVING count(*) > 1)

-- name: in_union
-- strategy: affected
SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s UNION ALL SELECT b FROM l.t)

-- name: in_distinct
-- strategy: affected
SELECT k FROM l.r WHERE a IN (SELECT DISTINCT a FROM l.s)

-- name: nested_in
-- strategy: affected
SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s WHERE b IN (SELECT b FROM l.t WHERE t.t = s.t))

-- name: in_of_itself
-- strategy: affected
SELECT k FROM l.r WHERE a IN (SELECT b FROM l.r)

-- name: exists_under_or
-- strategy: affected
-- tested
SELECT k FROM l.r WHERE t = 'x' OR EXISTS (SELECT 1 FROM l.s WHERE s.a = r.a)

-- name: in_under_or
-- strategy: affected
SELECT k FROM l.r WHERE d > 2 OR a IN (SELECT a FROM l.s WHERE t = 'y')

-- name: not_in_under_or
-- strategy: affected
SELECT k FROM l.r WHERE t = 'x' OR a NOT IN (SELECT a FROM l.s WHERE t = 'y')

-- name: two_under_or
-- strategy: affected
SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s) OR b IN (SELECT b FROM l.t WHERE t.d > 0)

-- name: exists_in_case
-- strategy: affected
SELECT k, CASE WHEN EXISTS (SELECT 1 FROM l.s WHERE s.a = r.a) THEN 'yes' ELSE 'no' END AS there FROM l.r

-- name: in_as_value
-- strategy: affected
SELECT k, a IN (SELECT a FROM l.s) AS there FROM l.r

-- name: not_in_as_value
-- strategy: affected
SELECT k, a NOT IN (SELECT b FROM l.s) AS absent FROM l.r

-- name: one_scalar
-- strategy: incremental
SELECT k, a FROM l.r WHERE a > (SELECT avg(b) FROM l.s)

-- name: correlated_scalar
-- strategy: affected
-- tested
SELECT r.k, r.d FROM l.r WHERE r.d >= (SELECT min(s.d) FROM l.s WHERE s.a = r.a)

-- name: scalar_count
-- strategy: affected
SELECT r.k, (SELECT count(*) FROM l.s WHERE s.a = r.a AND s.b > 0) AS n FROM l.r

-- name: two_scalars
-- strategy: affected
SELECT r.k, (SELECT max(b) FROM l.t) AS m, (SELECT sum(d) FROM l.s WHERE s.b = r.b) AS sd FROM l.r WHERE t = 'x'

-- name: scalar_in_expression
-- strategy: affected
SELECT k, coalesce((SELECT sum(d) FROM l.s WHERE s.a = r.a), 0) + 1 AS x FROM l.r

-- name: scalar_under_or
-- strategy: affected
SELECT k FROM l.r WHERE b = 1 OR d > (SELECT avg(d) FROM l.s WHERE s.a = r.a)

-- name: scalar_in_case
-- strategy: affected
SELECT k, CASE WHEN b > 0 THEN (SELECT max(d) FROM l.s) ELSE d END AS m FROM l.r

-- name: scalar_of_scalar
-- strategy: affected
SELECT k FROM l.r WHERE d > (SELECT avg(d) FROM l.s WHERE s.d < (SELECT max(d) FROM l.t))

-- name: having_scalar
-- strategy: incremental
SELECT a, sum(d) AS s FROM l.r GROUP BY a HAVING sum(d) > (SELECT sum(d) / 10 FROM l.s)

-- name: having_in
-- strategy: affected
SELECT a, count(*) AS n FROM l.r GROUP BY a HAVING a IN (SELECT b FROM l.s)

-- name: having_exists
-- strategy: affected
SELECT a, count(*) AS n FROM l.r GROUP BY a HAVING EXISTS (SELECT 1 FROM l.s WHERE s.a = r.a)

-- name: scalar_beside_aggregates
-- strategy: incremental
SELECT a, count(*) AS n, (SELECT count(*) FROM l.s) AS m FROM l.r GROUP BY a

-- name: exists_in_join_condition
-- strategy: affected
SELECT r.k, s.k AS sk FROM l.r JOIN l.s ON r.a = s.a AND EXISTS (SELECT 1 FROM l.t WHERE t.b = 1)

-- name: exists_with_groups
-- strategy: full SUBQUERY
SELECT k FROM l.r WHERE EXISTS (SELECT s.b FROM l.s WHERE s.a = r.a GROUP BY s.b HAVING count(*) > 1)

-- name: like_q15
-- strategy: affected
WITH rev AS (SELECT a, sum(d) AS total FROM l.r GROUP BY a) SELECT t.k, rev.total FROM l.t JOIN rev ON t.a = rev.a
  WHERE rev.total = (SELECT max(total) FROM rev)

-- name: like_q20
-- strategy: affected
SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s WHERE b IN (SELECT b FROM l.t WHERE t.t LIKE 'x%')
  AND s.k > (SELECT 0.5 * sum(t.b) FROM l.t WHERE t.a = s.a AND t.b = s.b))

-- name: like_q21
-- strategy: affected
SELECT r1.a, count(*) AS n FROM l.r r1 WHERE EXISTS (SELECT * FROM l.r r2 WHERE r2.a = r1.a AND r2.b <> r1.b)
  AND NOT EXISTS (SELECT * FROM l.r r3 WHERE r3.a = r1.a AND r3.b <> r1.b AND r3.t = 'y') GROUP BY r1.a

-- name: like_q22
-- strategy: affected
SELECT t, count(*) AS n, sum(d) AS s FROM l.r WHERE d > (SELECT avg(d) FROM l.r WHERE d > 0.00)
  AND NOT EXISTS (SELECT * FROM l.s WHERE s.a = r.a) GROUP BY t

-- name: scalar_count_distinct
-- strategy: affected
SELECT k, (SELECT count(DISTINCT b) FROM l.s WHERE s.a = r.a) AS n FROM l.r
