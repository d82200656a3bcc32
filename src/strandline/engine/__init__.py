"""The border to Spark and Delta: sessions, SQL, capabilities, table metadata. Nothing else knows which Spark it is."""
