"""What values of each type are in Spark SQL: canonical forms, total orders, lengths of time, names of fields."""
