"""Inputs from and outputs to tables of Delta Lake, with the ``deltalake`` package."""
