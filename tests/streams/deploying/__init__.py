"""Tests of the way of stream programs into a pipeline."""
