"""The rewrite of a query's text to Spark SQL of the same meaning, before anything else reads the query."""
