"""The shared parts of formats whose messages begin with the number of a schema in a registry."""
