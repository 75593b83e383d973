"""Kills a running pipeline again and again, at named points and at any time, and compares its rows with the acknowledged ones."""
