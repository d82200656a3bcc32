CREATE MATERIALIZED VIEW price_ranges
  COMMENT 'An aggregate over a table without a change feed'
AS SELECT category, count(*) AS products, min(price) AS lowest, max(price) AS highest, avg(price) AS average
FROM lake.products
GROUP BY category;
