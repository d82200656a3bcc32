-- Aggregates with and without groups.

-- name: global_aggregates
-- strategy: affected
-- tested
SELECT count(*) AS n, count(a) AS m, sum(d) AS s, avg(d) AS v, min(t) AS lo, max(t) AS hi FROM l.r

-- name: global_sum_of_nothing
-- strategy: incremental
SELECT sum(d) AS s, count(*) AS n FROM l.r WHERE a > 99

-- name: global_having
-- strategy: incremental
SELECT sum(a) AS s FROM l.r HAVING count(*) > 3

-- name: grouped_sums
-- strategy: incremental
-- tested
SELECT a, t, count(*) AS n, count(b) AS m, sum(d) AS s, avg(b) AS v FROM l.r GROUP BY a, t

-- name: decimal_averages
-- strategy: incremental
SELECT a, avg(d) AS v, sum(d) / count(*) AS w, sum(d * 2 - 1) AS x FROM l.bag GROUP BY a

-- name: minima
-- strategy: affected
-- tested
SELECT a, min(d) AS lo, max(t) AS hi FROM l.r GROUP BY a

-- name: filtered_aggregates
-- strategy: affected
SELECT a, count(*) FILTER (WHERE b > 0) AS n, sum(d) FILTER (WHERE t = 'x') AS s, max(b) FILTER (WHERE d > 1) AS m
  FROM l.r GROUP BY a

-- name: distinct_aggregates
-- strategy: affected
SELECT a, count(DISTINCT b) AS n, sum(DISTINCT b) AS s, count(DISTINCT b, t) AS m FROM l.r GROUP BY a

-- name: variances
-- strategy: affected
SELECT a, stddev(b) AS s, var_pop(b) AS v, stddev_samp(d) AS w FROM l.r GROUP BY a

-- name: booleans
-- strategy: incremental
SELECT a, bool_and(b > 0) AS every_one, bool_or(b > 1) AS any_one, count_if(b = 0) AS zeros FROM l.r GROUP BY a

-- name: percentiles
-- strategy: affected
SELECT a, percentile(b, 0.5) AS p, median(d) AS m FROM l.r GROUP BY a

-- name: percentile_within
-- strategy: affected
SELECT a, percentile_cont(0.5) WITHIN GROUP (ORDER BY b) AS p FROM l.r GROUP BY a

-- name: bit_aggregates
-- strategy: affected
SELECT a, bit_or(k) AS o, bit_xor(k) AS x, covar_pop(k, b) AS c FROM l.s GROUP BY a

-- name: collected_sorted
-- strategy: affected
-- tested
SELECT a, sort_array(collect_list(b)) AS bs, array_sort(collect_set(t)) AS ts FROM l.r GROUP BY a

-- name: collected
-- strategy: affected
-- compare: arrays sorted
SELECT a, collect_list(k) AS ks, collect_set(t) AS ts FROM l.r GROUP BY a

-- name: listed
-- strategy: affected
SELECT a, listagg(t, ',') WITHIN GROUP (ORDER BY t) AS ts FROM l.r GROUP BY a

-- name: first_of_the_same
-- strategy: affected
SELECT a, first(a * 2) AS f, last(a + 1) AS g, any_value(a) AS v FROM l.r GROUP BY a

-- name: first_not_null
-- strategy: affected
SELECT a, first(a, true) AS f, last_value(a) IGNORE NULLS AS g FROM l.r GROUP BY a

-- name: max_by_key
-- strategy: affected
-- tested
SELECT a, max_by(t, k) AS newest, min_by(d, k) AS oldest FROM l.r GROUP BY a

-- name: approximate
-- strategy: affected
SELECT a, approx_count_distinct(b) AS n, approx_percentile(b, 0.5) AS p FROM l.r GROUP BY a

-- name: most_common
-- strategy: affected
SELECT a, mode(a) AS m, max(struct(b, k)) AS top FROM l.r GROUP BY a

-- name: having_groups
-- strategy: incremental
SELECT a, sum(d) AS s FROM l.r GROUP BY a HAVING count(*) > 1 AND sum(d) > 0

-- name: having_only
-- strategy: affected
SELECT a FROM l.r GROUP BY a HAVING max(b) > 1

-- name: group_by_place
-- strategy: incremental
SELECT a % 2 AS p, t, count(*) AS n FROM l.r GROUP BY 1, 2

-- name: group_by_alias
-- strategy: incremental
SELECT coalesce(t, '-') AS label, sum(a) AS s FROM l.r GROUP BY label

-- name: group_by_all
-- strategy: incremental
-- tested
SELECT a, t, count(*) AS n, sum(d) AS s FROM l.r GROUP BY ALL

-- name: group_by_all_without_keys
-- strategy: incremental
SELECT count(*) AS n, sum(d) AS s FROM l.r GROUP BY ALL

-- name: group_by_constant
-- strategy: incremental
SELECT 'all' AS label, count(*) AS n FROM l.r GROUP BY 'all'

-- name: expressions_of_aggregates
-- strategy: affected
SELECT a, sum(d) / nullif(count(b), 0) AS v, CASE WHEN max(b) > 1 THEN 'big' ELSE 'small' END AS size FROM l.r GROUP BY a

-- name: aggregates_of_join
-- strategy: incremental
SELECT r.t, count(*) AS n, sum(r.d * s.b) AS x FROM l.r JOIN l.s ON r.a = s.a GROUP BY r.t

-- name: aggregates_of_duplicates
-- strategy: incremental
SELECT t, count(*) AS n, sum(d) AS s, avg(a) AS v FROM l.bag GROUP BY t

-- name: groups_without_aggregates
-- strategy: incremental
SELECT a, t FROM l.bag GROUP BY a, t

-- name: two_levels
-- strategy: affected
-- tested
SELECT n, count(*) AS c, max(s) AS m FROM (SELECT a, count(*) AS n, sum(d) AS s FROM l.r GROUP BY a) x GROUP BY n

-- name: like_q13
-- strategy: affected
SELECT n, count(*) AS c FROM (SELECT r.a, count(s.k) AS n FROM l.r LEFT OUTER JOIN l.s ON r.a = s.a
  AND s.t NOT LIKE 'y%' GROUP BY r.a) x GROUP BY n

-- name: conditional_sums
-- strategy: incremental
SELECT t, sum(CASE WHEN a > 1 THEN d ELSE 0 END) AS big, sum(if(b IS NULL, 1, 0)) AS unknown FROM l.r GROUP BY t
