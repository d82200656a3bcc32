CREATE MATERIALIZED VIEW region_ranking
  COMMENT 'a window function, which is always recomputed'
AS SELECT region, revenue, rank() OVER (ORDER BY revenue DESC) AS place
FROM region_revenue;
