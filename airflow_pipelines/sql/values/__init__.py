"""Values of each type in Spark SQL: canonical forms, total orders, lengths of time, names of fields."""
