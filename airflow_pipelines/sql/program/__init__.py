"""What a SQL program declares, before it is planned: relations, connectors, functions and their fingerprints."""
