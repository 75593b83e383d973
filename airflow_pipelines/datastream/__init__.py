"""Builds graphs of stream programs: what such a program imports."""
