"""Tests of the formats of files of stream programs."""
