"""Types, schemas and changes of rows, in terms of Arrow: the floor on which programs, connectors, streams and the engine stand."""
