"""The processes in which a stream program runs as part of a pipeline: their messages, and both ends of the connection."""
