CREATE MATERIALIZED VIEW region_shares
  COMMENT 'a diamond: both its views read order_lines, and must show the same state of it'
  REFRESH POLICY INCREMENTAL
AS SELECT r.region, r.revenue, r.revenue * 100 / a.revenue AS percent
FROM region_revenue AS r
CROSS JOIN revenue AS a;
