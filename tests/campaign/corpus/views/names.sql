-- Odd names: reserved words, spaces, quotes, dots, other scripts, other cases.

-- name: reserved_words
-- strategy: incremental
-- tested
SELECT `select`, `from`, count(*) AS `group` FROM l.`order` GROUP BY `select`, `from`

-- name: odd_columns
-- strategy: incremental
SELECT `select`, `a.b`, `größe`, `名前`, `it's`, `"q"` FROM l.`order` WHERE `größe` IS NOT NULL

-- name: odd_star
-- strategy: incremental
SELECT * FROM l.`order`

-- name: odd_join
-- strategy: affected
SELECT o.`a.b`, p.`größe` AS `zwei Wörter` FROM l.`order` o LEFT JOIN l.`order` p ON o.`a.b` = p.`from`

-- name: odd_aliases
-- strategy: incremental
SELECT k AS `a b`, a AS `c,d`, b AS `(e)`, t AS `f=g`, d AS `h;i` FROM l.r

-- name: odd_distinct
-- strategy: incremental
SELECT DISTINCT a AS `x y`, t AS `z``z` FROM l.r

-- name: spaces
-- strategy: incremental
SELECT `a b`, sum(`c,d`) AS `sum(c,d)`, count(*) FROM l.`odd table` GROUP BY `a b`

-- name: spaces_outer_join
-- strategy: affected
SELECT `odd table`.`(e)`, r.k FROM l.`odd table` LEFT JOIN l.r ON `odd table`.`a b` = r.a

-- name: unicode_table
-- strategy: incremental
SELECT `läufe`.k, x FROM l.`läufe` WHERE x <> 'ÄÖ'

-- name: other_case
-- strategy: incremental
SELECT R.K, r.A AS Aa FROM L.R WHERE T = 'x'

-- name: unnamed_expressions
-- strategy: incremental
SELECT a + 1, upper(t), count(*), sum(d) FROM l.r GROUP BY a + 1, upper(t)

-- name: own_words
-- strategy: incremental
SELECT a AS __count, sum(b) AS __sum_1, count(*) AS __n FROM l.r GROUP BY a

-- name: sign_column
-- strategy: incremental
SELECT k AS `_change_type`, a AS _commit_version FROM l.r

-- name: same_name_everywhere
-- strategy: incremental
SELECT t.t FROM (SELECT t.t AS t FROM l.t AS t) AS t

-- name: select
-- strategy: incremental
SELECT k FROM l.r WHERE a = 1

-- name: view with spaces
-- strategy: affected
SELECT a, max(k) AS k FROM l.r GROUP BY a

-- name: größe der 名前
-- strategy: incremental
SELECT a, count(*) AS n FROM l.r GROUP BY a
