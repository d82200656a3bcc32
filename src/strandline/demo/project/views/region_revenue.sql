CREATE MATERIALIZED VIEW region_revenue
  COMMENT 'a view on a view, joined with a table of the shop: sums are added to and subtracted from'
  REFRESH POLICY INCREMENTAL
AS SELECT c.region, count(*) AS lines, sum(l.amount) AS revenue
FROM order_lines AS l
JOIN shop.customers AS c ON c.customer_id = l.customer_id
GROUP BY c.region;
