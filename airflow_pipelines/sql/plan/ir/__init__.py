"""The nodes of a plan, and what follows from a node alone: its SQL, the SQL of its delta, its join graph."""
