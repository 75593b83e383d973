"""Translations of a query's text to what Spark knows by that meaning, before anything else reads the query."""
