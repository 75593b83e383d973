"""The parts of a program, in whatever language it was written: relations, connectors, functions, types, messages."""
