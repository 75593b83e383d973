"""Inputs from and outputs to Iceberg tables, with pyiceberg."""
