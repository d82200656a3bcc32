CREATE MATERIALIZED VIEW monthly_revenue
  COMMENT 'A view on a view: count, sum and average are added to and subtracted from'
  REFRESH POLICY INCREMENTAL
AS SELECT trunc(ordered_on, 'MONTH') AS month, category,
          count(*) AS lines, sum(amount) AS revenue, avg(amount) AS average
FROM order_lines
GROUP BY trunc(ordered_on, 'MONTH'), category;
