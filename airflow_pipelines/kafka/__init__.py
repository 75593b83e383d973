"""What the connectors of pipelines and those of stream programs have in common of the client of Kafka."""
