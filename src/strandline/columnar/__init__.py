"""Plans evaluated over Arrow's columns, without Spark; what comes out is what Spark would have given."""
