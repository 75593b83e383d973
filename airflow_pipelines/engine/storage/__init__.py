"""A pipeline's storage folder: batches, checkpoints, journal, lock, epochs and copies."""
