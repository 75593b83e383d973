"""The parts that formats share whose messages begin with the number of a schema in a registry."""
