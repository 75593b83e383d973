"""Example DAGs, each runnable, each run by the tests, and the demo that tells the story of the first."""
