"""Types, schemas and changes of rows, in terms of Arrow: the base layer of programs, connectors, streams and the engine."""
