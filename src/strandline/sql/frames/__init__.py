"""The plan of a Spark Connect DataFrame as the text of a query."""
