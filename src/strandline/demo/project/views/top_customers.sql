CREATE MATERIALIZED VIEW top_customers
  COMMENT 'HAVING: customers come and go as their sums change'
  REFRESH POLICY INCREMENTAL
AS SELECT customer_id, count(*) AS lines, sum(amount) AS spent, max(ordered_on) AS last_order
FROM order_lines
GROUP BY customer_id
HAVING sum(amount) > 30000;
