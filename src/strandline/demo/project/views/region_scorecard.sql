CREATE MATERIALIZED VIEW region_scorecard
  COMMENT 'A diamond: both inputs are made from order_lines, and always show the same state of it'
AS SELECT r.region, r.lines, r.revenue, count(*) AS markets
FROM region_revenue AS r
JOIN market_reach AS m ON m.region = r.region
GROUP BY r.region, r.lines, r.revenue;
