CREATE MATERIALIZED VIEW region_revenue
  COMMENT 'A join of a view and a source table'
  REFRESH POLICY INCREMENTAL
AS SELECT c.region, count(*) AS lines, sum(l.amount) AS revenue
FROM order_lines AS l
JOIN shop.customers AS c ON c.customer_id = l.customer_id
GROUP BY c.region;
