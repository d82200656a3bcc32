CREATE MATERIALIZED VIEW region_ranking
  COMMENT 'all regions are one partition, so they are ranked anew when one changes'
AS SELECT region, revenue, row_number() OVER (ORDER BY revenue DESC) AS place
FROM region_revenue;
