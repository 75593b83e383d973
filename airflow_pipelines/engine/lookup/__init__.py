"""Finding stored rows by their keys without a Spark job."""
