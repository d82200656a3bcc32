CREATE MATERIALIZED VIEW region_ranking
  COMMENT 'numbered in an order that leaves ties open, so it is always recomputed'
AS SELECT region, revenue, row_number() OVER (ORDER BY revenue DESC) AS place
FROM region_revenue;
