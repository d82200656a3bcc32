-- Literals, comments and text that must arrive at Spark as it was written.

-- name: string_literals
-- strategy: incremental
-- tested
SELECT k, 'it''s' AS a, "double" AS b, r'\d+\n' AS c, 'tab\there' AS d, '-- no comment' AS e, '/* nor this */' AS f FROM l.r

-- name: unicode_literals
-- strategy: incremental
SELECT k, 'ÄÖÜ 名前 🎈' AS a, '\u00e9' AS b FROM l.r WHERE t <> 'é'

-- name: number_literals
-- strategy: incremental
SELECT k, 1L AS a, 2S AS b, 3Y AS c, 1.5BD AS d, 1e3 AS e, 2.5D AS f, 1.5F AS g, .5 AS h, -0.0D AS i FROM l.r

-- name: big_numbers
-- strategy: incremental
SELECT k, 9223372036854775807 AS a, 12345678901234567890 AS b, 0.1234567890123456789 AS c FROM l.r

-- name: time_literals
-- strategy: incremental
SELECT k, DATE '2024-02-29' AS a, TIMESTAMP '2024-02-29 12:00:00.123456' AS b, TIMESTAMP_NTZ '2024-01-01 00:00:00' AS c,
  X'CAFE' AS d FROM l.r

-- name: commented
-- strategy: incremental
SELECT /* what */ k, -- the key
  a /* a /* nested */ comment */ FROM /* where from */ l.r -- the table
  WHERE /* which */ a > /* more than */ 0 -- done

-- name: long_in_list
-- strategy: incremental
SELECT k FROM l.r WHERE k IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20) AND t NOT IN ('q', 'w')

-- name: patterns
-- strategy: incremental
SELECT k, t LIKE 'x%' AS a, t RLIKE '^[xy]$' AS b, t LIKE '%\_%' AS c, t LIKE '/%' ESCAPE '/' AS d, t ILIKE 'X' AS e FROM l.r

-- name: conversions
-- strategy: incremental
SELECT k, CAST(d AS int) AS a, d::string AS b, try_cast(t AS int) AS c, to_char(d, '999D99') AS e,
  to_date('29.02.2024', 'dd.MM.yyyy') AS f FROM l.r

-- name: operators
-- strategy: incremental
SELECT k, a DIV 2 AS q, a % 2 AS m, a & 1 AS n, a | 2 AS o, a ^ b AS x, ~a AS i, t || '!' AS y, a <=> b AS z,
  a BETWEEN 0 AND 2 AS w, a IS DISTINCT FROM b AS v FROM l.r

-- name: conditions
-- strategy: incremental
SELECT k, CASE a WHEN 0 THEN 'none' WHEN 1 THEN 'one' END AS c, if(b > 0, 1, 0) AS i, nvl(a, -1) AS n,
  nullif(a, b) AS u, greatest(a, b) AS g, decode(a, 1, 'one', 'other') AS x FROM l.r WHERE NOT (a = 1 AND b = 1) OR a IS NULL

-- name: always_false
-- strategy: incremental
SELECT k FROM l.r WHERE 1 = 0

-- name: random_values
-- strategy: full NON_DETERMINISTIC
SELECT k, rand() >= 0 AS yes FROM l.r

-- name: todays_rows
-- strategy: full NON_DETERMINISTIC
SELECT k FROM l.kinds WHERE day < current_date()

-- name: sampled
-- strategy: full NON_DETERMINISTIC
SELECT k FROM l.r TABLESAMPLE (100 PERCENT)

-- name: recursive
-- strategy: full CLAUSE
WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3) SELECT x, r.k FROM n JOIN l.r ON r.a = n.x

-- name: pivoted
-- strategy: full CLAUSE
SELECT * FROM (SELECT a, t, d FROM l.r) PIVOT (sum(d) FOR t IN ('x', 'y'))

-- name: star_except
-- strategy: incremental
SELECT * EXCEPT (d) FROM l.r

-- name: hinted
-- strategy: incremental
SELECT /*+ BROADCAST(s) */ r.k, s.k AS sk FROM l.r JOIN l.s ON r.a = s.a

-- name: comparisons_side_by_side
-- strategy: incremental
-- tested
SELECT k, flag = even BETWEEN false AND true AS shown, flag = even < true AS less
FROM (SELECT k, flag, k % 2 = 0 AS even FROM l.kinds) WHERE flag = even IN (true, false)
