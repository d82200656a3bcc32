CREATE MATERIALIZED VIEW market_reach
  COMMENT 'DISTINCT: a row stays until its last reason to be there is gone'
  REFRESH POLICY INCREMENTAL
AS SELECT DISTINCT c.region, c.segment, l.category
FROM order_lines AS l
JOIN shop.customers AS c ON c.customer_id = l.customer_id;
