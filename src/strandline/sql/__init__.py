"""SQL in and out: the DDL, SELECT to algebra, algebra to Spark SQL. No Spark here: types come from an analyser."""
