"""The plan's intermediate representation: nodes, their SQL, the SQL of their deltas, their join graphs."""
