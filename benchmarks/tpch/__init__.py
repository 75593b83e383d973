"""TPC-H as programs of ours: the schema, generated data with changes, and the 22 queries as views.

Written from the public specification (version 3); the data follows its distributions without being the data of its own tool.
"""
