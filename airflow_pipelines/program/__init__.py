"""What a program is made of, in whatever language it was written: relations, connectors, functions, types, messages."""
