CREATE MATERIALIZED VIEW order_lines
  COMMENT 'a join across both sources: orders of the shop, lines and products of the lake'
  REFRESH POLICY INCREMENTAL
AS SELECT l.order_id, l.line_no, o.customer_id, o.ordered_on, p.category,
          CAST(l.quantity * l.unit_price AS DECIMAL(14, 2)) AS amount
FROM shop.orders AS o
JOIN lake.line_items AS l ON l.order_id = o.order_id
JOIN lake.products AS p ON p.product_id = l.product_id
WHERE o.status <> 'cancelled';
