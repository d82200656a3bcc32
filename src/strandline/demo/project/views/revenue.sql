CREATE MATERIALIZED VIEW revenue
  COMMENT 'another view on order_lines: all revenue in one row'
  REFRESH POLICY INCREMENTAL
AS SELECT count(*) AS lines, sum(amount) AS revenue
FROM order_lines;
