"""From a program's text to relations, connectors, plans and fingerprints. Knows no Spark."""
