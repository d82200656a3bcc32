CREATE MATERIALIZED VIEW total
  COMMENT 'all the money in the accounts: transfers move it about, so it must never change'
  REFRESH POLICY INCREMENTAL
AS SELECT count(*) AS accounts, sum(balance) AS money
FROM shop.accounts;
