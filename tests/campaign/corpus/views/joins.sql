-- Inner, outer, semi and anti joins.

-- name: inner_join
-- strategy: incremental
SELECT r.k, r.t, s.d FROM l.r JOIN l.s ON r.a = s.a

-- name: comma_join
-- strategy: incremental
SELECT r.k, s.k AS sk FROM l.r, l.s WHERE r.a = s.a AND r.b < s.b AND s.t IS NOT NULL

-- name: cross_join
-- strategy: incremental
SELECT r.k, t.k AS tk FROM l.r CROSS JOIN l.t WHERE r.k % 3 = 0

-- name: theta_join
-- strategy: incremental
SELECT r.k, s.k AS sk FROM l.r JOIN l.s ON r.d < s.d AND r.b <> s.b

-- name: null_safe_join
-- strategy: incremental
SELECT r.k, s.k AS sk FROM l.r JOIN l.s ON r.a <=> s.a AND r.t <=> s.t

-- name: self_join
-- strategy: incremental
-- tested
SELECT x.k, y.k AS yk FROM l.r x JOIN l.r y ON x.a = y.a AND x.k < y.k

-- name: self_join_three_times
-- strategy: incremental
SELECT x.k, y.k AS yk, z.k AS zk FROM l.r x, l.r y, l.r z WHERE x.a = y.b AND y.a = z.b

-- name: five_way_join
-- strategy: incremental
SELECT r.k, s.k AS sk, t.k AS tk, b.d, c.flag FROM l.r JOIN l.s ON r.a = s.a JOIN l.t ON s.b = t.b
  JOIN l.bag b ON b.a = r.a JOIN l.kinds c ON c.k % 4 = r.a

-- name: join_of_duplicates
-- strategy: incremental
SELECT x.a, y.t FROM l.bag x JOIN l.bag y ON x.a = y.a

-- name: join_on_expressions
-- strategy: incremental
SELECT r.k, s.k AS sk FROM l.r JOIN l.s ON r.a + 1 = s.b * 1 AND upper(r.t) = upper(s.t)

-- name: join_or
-- strategy: incremental
SELECT r.k, s.k AS sk FROM l.r JOIN l.s ON r.a = s.a OR r.b = s.b

-- name: join_using
-- strategy: incremental
SELECT a, r.k, s.k AS sk FROM l.r JOIN l.s USING (a)

-- name: join_using_two
-- strategy: incremental
SELECT a, b, count(*) AS n FROM l.r JOIN l.s USING (a, b) GROUP BY a, b

-- name: join_using_star
-- strategy: incremental
SELECT * FROM (SELECT a, k AS rk FROM l.r) JOIN (SELECT a, k AS sk FROM l.s) USING (a)

-- name: join_using_three
-- strategy: incremental
SELECT a, r.k, s.k AS sk, t.k AS tk FROM l.r JOIN l.s USING (a) JOIN l.t USING (a)

-- name: left_join_using
-- strategy: affected
-- tested
SELECT a, r.k, s.k AS sk FROM l.r LEFT JOIN l.s USING (a)

-- name: right_join_using
-- strategy: affected
SELECT a, r.k, s.k AS sk FROM l.r RIGHT JOIN l.s USING (a)

-- name: full_join_using
-- strategy: affected
SELECT a, r.k, s.k AS sk FROM l.r FULL JOIN l.s USING (a)

-- name: semi_join_using
-- strategy: affected
SELECT a, k FROM l.r LEFT SEMI JOIN l.s USING (a)

-- name: natural_join
-- strategy: incremental
SELECT a, rk, sk FROM (SELECT a, k AS rk FROM l.r) NATURAL JOIN (SELECT a, k AS sk FROM l.s)

-- name: natural_left_join
-- strategy: affected
SELECT * FROM (SELECT a, k AS rk FROM l.r) NATURAL LEFT JOIN (SELECT a, k AS sk FROM l.s)

-- name: natural_full_join
-- strategy: affected
SELECT * FROM (SELECT a, b, k AS rk FROM l.r) NATURAL FULL OUTER JOIN (SELECT a, b, k AS sk FROM l.s)

-- name: left_join
-- strategy: affected
-- tested
SELECT r.k, r.a, s.k AS sk, s.b FROM l.r LEFT JOIN l.s ON r.a = s.a

-- name: right_join
-- strategy: affected
SELECT r.k, s.k AS sk, s.b FROM l.r RIGHT JOIN l.s ON r.a = s.a AND s.b > 0

-- name: full_join
-- strategy: affected
-- tested
SELECT r.k, s.k AS sk FROM l.r FULL OUTER JOIN l.s ON r.a = s.a AND r.b = s.b

-- name: left_joins
-- strategy: affected
SELECT r.k, s.k AS sk, t.k AS tk FROM l.r LEFT JOIN l.s ON r.a = s.a LEFT JOIN l.t ON s.b = t.b WHERE r.t IS NOT NULL

-- name: theta_left_join
-- strategy: affected
SELECT r.k, s.k AS sk FROM l.r LEFT JOIN l.s ON r.a > s.a AND r.t = 'x'

-- name: left_join_of_nothing_in_common
-- strategy: affected
SELECT r.k, s.k AS sk FROM l.r LEFT JOIN l.s ON s.t = 'nowhere'

-- name: left_join_null_safe
-- strategy: affected
SELECT r.k, s.k AS sk FROM l.r LEFT JOIN l.s ON r.a <=> s.a

-- name: left_join_of_duplicates
-- strategy: affected
SELECT x.a, x.t, y.d FROM l.bag x LEFT JOIN l.bag y ON x.a = y.a AND y.t = 'x'

-- name: full_self_join
-- strategy: affected
SELECT x.k, y.k AS yk FROM l.r x FULL JOIN l.r y ON x.a = y.b

-- name: left_join_where_null
-- strategy: affected
SELECT r.k FROM l.r LEFT JOIN l.s ON r.a = s.a WHERE s.k IS NULL

-- name: left_join_of_join
-- strategy: affected
SELECT r.k, x.sk FROM l.r LEFT JOIN (SELECT s.k AS sk, s.a, t.b FROM l.s JOIN l.t ON s.b = t.b) x ON x.a = r.a

-- name: left_join_of_left_join
-- strategy: affected
SELECT r.k, x.sk, x.tk FROM l.r LEFT JOIN (SELECT s.k AS sk, s.a, t.k AS tk FROM l.s LEFT JOIN l.t ON s.b = t.b) x ON x.a = r.a

-- name: full_join_of_groups
-- strategy: affected
SELECT x.a, y.b, x.n, y.m FROM (SELECT a, count(*) AS n FROM l.r GROUP BY a) x
  FULL JOIN (SELECT b, count(*) AS m FROM l.s GROUP BY b) y ON x.a = y.b

-- name: grouped_left_join
-- strategy: affected
-- tested
SELECT r.a, count(s.k) AS n, sum(s.d) AS d FROM l.r LEFT JOIN l.s ON r.a = s.a AND s.t <> 'x' GROUP BY r.a

-- name: derived_left_join
-- strategy: affected
SELECT x.a, x.n, t.k FROM (SELECT a, count(*) AS n FROM l.r GROUP BY a) x LEFT JOIN l.t ON t.a = x.a

-- name: mixed_joins
-- strategy: affected
SELECT r.k, s.k AS sk, t.k AS tk FROM l.r JOIN l.s ON r.a = s.a LEFT JOIN l.t ON t.b = r.b AND t.a = s.a WHERE r.d > 0

-- name: semi_join
-- strategy: affected
-- tested
SELECT r.k FROM l.r LEFT SEMI JOIN l.s ON r.a = s.a AND s.k > r.k

-- name: anti_join
-- strategy: affected
-- tested
SELECT r.k, r.b FROM l.r LEFT ANTI JOIN l.s ON r.a = s.a

-- name: anti_join_of_duplicates
-- strategy: affected
SELECT x.a, x.t FROM l.bag x LEFT ANTI JOIN l.s ON x.a = s.b

-- name: parenthesised_join
-- strategy: incremental
SELECT r.k, s.k AS sk, t.k AS tk FROM l.r JOIN (l.s JOIN l.t ON s.b = t.b) ON r.a = s.a

-- name: join_without_on
-- strategy: incremental
SELECT r.k, s.k AS sk FROM l.r JOIN l.s WHERE r.a = s.a

-- name: left_join_without_on
-- strategy: affected
SELECT s.k, t.k AS tk FROM (SELECT k FROM l.s WHERE k % 3 = 0) s LEFT JOIN (SELECT k FROM l.t WHERE t = 'x') t
