"""Ad-hoc queries, and their results in the formats in which they are sent."""
