"""Code for the client of Kafka that the connectors of pipelines and those of stream programs share."""
