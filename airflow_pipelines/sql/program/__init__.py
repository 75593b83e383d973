"""What a program's text says before it is planned: relations, connectors, functions, fingerprints."""
