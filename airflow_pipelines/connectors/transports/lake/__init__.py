"""What the connectors for Delta and Iceberg tables have in common."""
