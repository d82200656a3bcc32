CREATE MATERIALIZED VIEW follow_ups
  COMMENT 'UNION ALL: cancelled orders and returned lines'
  REFRESH POLICY INCREMENTAL
AS SELECT order_id, customer_id, 'cancelled' AS cause, CAST(NULL AS DATE) AS returned_on
FROM shop.orders
WHERE status = 'cancelled'
UNION ALL
SELECT o.order_id, o.customer_id, 'returned', l.returned_on
FROM shop.orders AS o
JOIN lake.line_items AS l ON l.order_id = o.order_id
WHERE l.returned_on IS NOT NULL;
