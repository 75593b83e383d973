"""The evaluation of steps: what an operator sees, and the ways of computing, from Arrow in the process to jobs of Spark."""
