-- Window functions.

-- name: window_sums
-- strategy: affected
-- tested
SELECT k, a, sum(b) OVER (PARTITION BY a) AS s, count(*) OVER (PARTITION BY a) AS n FROM l.r

-- name: window_ranks
-- strategy: affected
SELECT k, rank() OVER (PARTITION BY t ORDER BY a, b) AS rk, max(d) OVER (PARTITION BY t, b) AS m FROM l.r
  WHERE a IS NOT NULL

-- name: window_of_all
-- strategy: affected
SELECT k, count(*) OVER () AS n FROM l.s

-- name: window_row_number
-- strategy: affected
-- tested
SELECT k, a, row_number() OVER (PARTITION BY a ORDER BY k) AS n FROM l.r

-- name: window_row_number_desc
-- strategy: affected
SELECT k, row_number() OVER (PARTITION BY t ORDER BY d DESC NULLS LAST, k) AS n FROM l.r

-- name: window_lag_lead
-- strategy: affected
SELECT k, lag(d) OVER (PARTITION BY a ORDER BY k) AS before, lead(d, 2, 0) OVER (PARTITION BY a ORDER BY k) AS after FROM l.r

-- name: window_first_last
-- strategy: affected
SELECT k, first_value(t) OVER (PARTITION BY a ORDER BY k) AS f,
  last_value(t) OVER (PARTITION BY a ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS g FROM l.r

-- name: window_ntile
-- strategy: affected
SELECT k, ntile(3) OVER (PARTITION BY a ORDER BY k) AS q, dense_rank() OVER (PARTITION BY a ORDER BY b) AS r,
  percent_rank() OVER (PARTITION BY a ORDER BY b) AS p, cume_dist() OVER (PARTITION BY a ORDER BY b) AS c FROM l.r

-- name: window_running_sum
-- strategy: affected
SELECT k, sum(d) OVER (PARTITION BY a ORDER BY k) AS s FROM l.r

-- name: window_rows_frame
-- strategy: affected
SELECT k, sum(b) OVER (PARTITION BY a ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM l.r

-- name: window_range_frame
-- strategy: affected
SELECT k, count(*) OVER (PARTITION BY a ORDER BY b RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM l.r

-- name: window_top_of_each
-- strategy: affected
-- tested
SELECT k, a, d FROM (SELECT k, a, d, row_number() OVER (PARTITION BY a ORDER BY d DESC, k) AS n FROM l.r) x WHERE n <= 2

-- name: window_named
-- strategy: affected
SELECT k, sum(b) OVER w AS s, count(*) OVER w AS n FROM l.r WINDOW w AS (PARTITION BY a)

-- name: window_over_groups
-- strategy: affected
SELECT a, sum(d) AS s, sum(sum(d)) OVER () AS total, rank() OVER (ORDER BY count(*) DESC, a) AS place FROM l.r GROUP BY a

-- name: window_over_groups_partitioned
-- strategy: affected
SELECT a, t, count(*) AS n, count(*) * 1.0 / sum(count(*)) OVER (PARTITION BY t) AS share FROM l.r GROUP BY a, t

-- name: window_over_join
-- strategy: affected
SELECT r.k, s.k AS sk, max(s.d) OVER (PARTITION BY r.t) AS m FROM l.r JOIN l.s ON r.a = s.a

-- name: window_in_expression
-- strategy: affected
SELECT k, coalesce(b, 0) - min(b) OVER (PARTITION BY a) AS above FROM l.r

-- name: windows_of_several_partitions
-- strategy: affected
SELECT k, count(*) OVER (PARTITION BY a) AS na, count(*) OVER (PARTITION BY t) AS nt FROM l.r

-- name: window_of_duplicates
-- strategy: affected
SELECT a, t, count(*) OVER (PARTITION BY a) AS n, rank() OVER (PARTITION BY a ORDER BY t) AS r FROM l.bag

-- name: window_over_window
-- strategy: affected
SELECT k, n, max(n) OVER (PARTITION BY t) AS m FROM (SELECT k, t, count(*) OVER (PARTITION BY a) AS n FROM l.r) x

-- name: window_over_floats
-- strategy: affected
SELECT k, sum(x) OVER (PARTITION BY flag) AS s, max(x) OVER (PARTITION BY flag) AS m FROM l.kinds

-- name: grouped_windows
-- strategy: affected
SELECT n, count(*) AS c FROM (SELECT k, rank() OVER (PARTITION BY a ORDER BY b) AS n FROM l.r) x GROUP BY n

-- name: distinct_windows
-- strategy: affected
SELECT DISTINCT a, count(*) OVER (PARTITION BY a) AS n FROM l.r
