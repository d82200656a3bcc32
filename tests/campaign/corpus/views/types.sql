-- Types: floats with NaN, -0.0 and infinities, decimals, dates, booleans, binary, arrays, structs, maps.

-- name: all_kinds
-- strategy: incremental
-- tested
SELECT * FROM l.kinds

-- name: float_sums
-- strategy: incremental
-- tested
SELECT flag, sum(x) AS s, avg(x) AS v, sum(f) AS sf, avg(f) AS vf, count(x) AS n FROM l.kinds GROUP BY flag

-- name: float_groups
-- strategy: incremental
-- tested
SELECT x, count(*) AS n FROM l.kinds GROUP BY x

-- name: float_distinct
-- strategy: incremental
SELECT DISTINCT x, f FROM l.kinds

-- name: float_minima
-- strategy: affected
SELECT flag, min(x) AS lo, max(x) AS hi, min(f) AS flo FROM l.kinds GROUP BY flag

-- name: float_join
-- strategy: incremental
SELECT p.k, q.k AS qk FROM l.kinds p JOIN l.kinds q ON p.x = q.x

-- name: float_left_join
-- strategy: affected
SELECT p.k, q.k AS qk FROM l.kinds p LEFT JOIN l.kinds q ON p.x = q.f

-- name: float_except
-- strategy: incremental
SELECT x FROM l.kinds EXCEPT ALL SELECT CAST(f AS double) FROM l.kinds

-- name: float_filter
-- strategy: incremental
SELECT k, x, x > 1 AS big, isnan(x) AS nan, -x AS minus FROM l.kinds WHERE x >= 0.0

-- name: float_variance
-- strategy: affected
SELECT flag, stddev(x) AS s FROM l.kinds WHERE abs(x) < 10 GROUP BY flag

-- name: wide_decimals
-- strategy: affected
SELECT flag, sum(w) AS s, avg(w) AS v, sum(n) AS sn, avg(n) AS vn FROM l.kinds GROUP BY flag

-- name: decimal_arithmetic
-- strategy: incremental
SELECT k, w * n AS product, n / 3 AS third, CAST(w AS decimal(10,2)) AS rounded FROM l.kinds WHERE abs(w) < 1000

-- name: small_integers
-- strategy: affected
SELECT flag, sum(i8) AS s8, avg(i16) AS v16, min(i8) AS lo FROM l.kinds GROUP BY flag

-- name: dates
-- strategy: incremental
SELECT year(day) AS y, month(day) AS m, count(*) AS n FROM l.kinds GROUP BY year(day), month(day)

-- name: date_minima
-- strategy: affected
SELECT flag, min(day) AS first_day, max(ts) AS last_moment FROM l.kinds GROUP BY flag

-- name: date_arithmetic
-- strategy: incremental
SELECT k, day + INTERVAL 1 DAY AS next, datediff(day, DATE '2024-01-01') AS days, date_trunc('hour', ts) AS hour FROM l.kinds

-- name: timestamps_joined
-- strategy: incremental
SELECT p.k, q.k AS qk FROM l.kinds p JOIN l.kinds q ON p.ts < q.ts AND p.day = q.day

-- name: boolean_groups
-- strategy: incremental
SELECT flag, NOT flag AS other, count(*) AS n FROM l.kinds GROUP BY flag

-- name: binary_values
-- strategy: incremental
SELECT bin, count(*) AS n FROM l.kinds GROUP BY bin

-- name: nested_rows
-- strategy: incremental
SELECT k, xs, tags, st, ps FROM l.nest

-- name: map_rows
-- strategy: incremental
-- tested
SELECT k, m FROM l.nest

-- name: map_of_duplicates
-- strategy: incremental
SELECT m, st.a AS a FROM l.nest

-- name: map_join
-- strategy: incremental
SELECT n.k, n.m, r.t FROM l.nest n JOIN l.r ON n.m['a'] = r.a

-- name: map_left_join
-- strategy: affected
SELECT r.k, n.m FROM l.r LEFT JOIN l.nest n ON n.st.a = r.a

-- name: map_groups
-- strategy: incremental
SELECT m['a'] AS a, size(m) AS n, count(*) AS c FROM l.nest GROUP BY m['a'], size(m)

-- name: map_window
-- strategy: affected
SELECT k, m, count(*) OVER (PARTITION BY st.a) AS n FROM l.nest

-- name: map_exists
-- strategy: affected
SELECT k, m FROM l.nest WHERE EXISTS (SELECT 1 FROM l.r WHERE r.a = nest.st.a)

-- name: maps_made
-- strategy: incremental
SELECT a, map('n', count(*), 's', sum(b)) AS both FROM l.r GROUP BY a

-- name: map_grouped_by
-- strategy: full TYPE_NOT_COMPARABLE
SELECT m, count(*) AS n FROM l.nest GROUP BY m

-- name: struct_fields
-- strategy: incremental
SELECT k, st.a, st.b.c AS c, st['a'] AS again FROM l.nest

-- name: struct_groups
-- strategy: incremental
SELECT st, count(*) AS n FROM l.nest GROUP BY st

-- name: array_groups
-- strategy: affected
SELECT xs, count(*) AS n, max(k) - min(k) AS spread FROM l.nest GROUP BY xs

-- name: array_distinct
-- strategy: incremental
SELECT DISTINCT tags, ps FROM l.nest

-- name: structs_joined
-- strategy: incremental
SELECT p.k, q.k AS qk FROM l.nest p JOIN l.nest q ON p.st = q.st AND p.k < q.k

-- name: array_functions
-- strategy: incremental
SELECT k, transform(xs, x -> x + 1) AS more, filter(tags, t -> t IS NOT NULL) AS there, size(xs) AS n,
  aggregate(xs, 0, (acc, x) -> acc + coalesce(x, 0)) AS total FROM l.nest

-- name: structs_made
-- strategy: incremental
SELECT k, named_struct('a', a, 'both', struct(b, t)) AS s, array(a, b) AS ab FROM l.r

-- name: struct_union
-- strategy: incremental
SELECT st FROM l.nest UNION ALL SELECT named_struct('a', a, 'b', named_struct('c', t)) FROM l.r
