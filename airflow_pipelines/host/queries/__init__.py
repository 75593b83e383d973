"""Ad-hoc queries, and their results as they are sent."""
