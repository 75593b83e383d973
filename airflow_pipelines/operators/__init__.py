"""Operators: what a DAG does to pipelines."""
