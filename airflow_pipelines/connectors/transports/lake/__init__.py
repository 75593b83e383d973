"""The common parts of the connectors for Delta and Iceberg tables."""
