CREATE MATERIALIZED VIEW monthly_ranking
  COMMENT 'A window function, which is recomputed: the reason says so'
AS SELECT month, category, revenue,
          rank() OVER (PARTITION BY month ORDER BY revenue DESC) AS place
FROM monthly_revenue;
