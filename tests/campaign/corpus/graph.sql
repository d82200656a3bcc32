-- One graph of views, four deep, with diamonds and operators of all kinds.

-- name: deep_left
-- strategy: affected
SELECT r.k, r.a, r.t, s.k AS sk, s.d FROM l.r LEFT JOIN l.s ON r.a = s.a AND s.b > 0

-- name: deep_sums
-- strategy: incremental
SELECT a, count(*) AS n, sum(d) AS total, avg(b) AS mean FROM l.r GROUP BY a

-- name: deep_union
-- strategy: incremental
SELECT a, t FROM l.bag UNION ALL SELECT b, t FROM l.s

-- name: deep_ranks
-- strategy: affected
SELECT k, a, b, rank() OVER (PARTITION BY a ORDER BY d, k) AS place FROM l.r

-- name: deep_tags
-- strategy: incremental
SELECT k, tag FROM l.nest LATERAL VIEW explode(tags) e AS tag

-- name: deep_joined
-- strategy: incremental
SELECT x.k, x.sk, x.t, y.n, y.total FROM deep_left x JOIN deep_sums y ON x.a <=> y.a

-- name: deep_distinct
-- strategy: incremental
SELECT DISTINCT a, t FROM deep_union

-- name: deep_firsts
-- strategy: affected
SELECT a, min(k) AS k, max(b) AS b FROM deep_ranks WHERE place <= 2 GROUP BY a

-- name: deep_tagged
-- strategy: affected
SELECT u.a, u.t, v.tag FROM deep_union u LEFT JOIN deep_tags v ON u.a = v.k % 4
  WHERE u.a IN (SELECT a FROM deep_sums WHERE n > 1)

-- name: deep_above
-- strategy: affected
SELECT k, n, total FROM deep_joined WHERE total > (SELECT avg(total) FROM deep_sums)

-- name: deep_missing
-- strategy: affected
SELECT x.k, x.n, x.t FROM deep_joined x WHERE NOT EXISTS (SELECT 1 FROM deep_distinct y WHERE y.t = x.t AND y.a = x.n)

-- name: deep_full
-- strategy: affected
SELECT x.a, x.k, y.n, z.t FROM deep_firsts x FULL JOIN deep_sums y ON x.a = y.a LEFT JOIN deep_distinct z ON z.a = y.a

-- name: deep_rows
-- strategy: incremental
SELECT k FROM deep_joined EXCEPT ALL SELECT k FROM deep_firsts

-- name: deep_end
-- strategy: affected
SELECT x.t, count(*) AS n, count(DISTINCT y.k) AS m, max(y.n) AS most FROM deep_missing x LEFT JOIN deep_full y ON x.n = y.n
  GROUP BY x.t

-- name: deep_windows
-- strategy: affected
SELECT k, count(*) OVER (PARTITION BY k) AS n FROM deep_rows

-- name: deep_last
-- strategy: affected
SELECT x.t, x.n, x.k, g.tag FROM (SELECT e.t, e.n, w.k FROM deep_end e FULL JOIN deep_windows w ON e.n = w.n) x
  LEFT JOIN deep_tagged g ON g.t = x.t WHERE NOT EXISTS (SELECT 1 FROM deep_above v WHERE v.k = x.k)
