"""The process that reads the sources of a stream program: its messages, and both ends of the connection."""
