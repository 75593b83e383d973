"""What formats share whose messages begin with the number of a schema in a registry: options, the registry, reading, writing."""
