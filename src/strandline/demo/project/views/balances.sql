CREATE MATERIALIZED VIEW balances
  COMMENT 'an aggregate with a maximum: customers whose accounts changed are computed anew'
  REFRESH POLICY INCREMENTAL
AS SELECT customer_id, count(*) AS accounts, sum(balance) AS money, max(balance) AS largest
FROM shop.accounts
GROUP BY customer_id;
