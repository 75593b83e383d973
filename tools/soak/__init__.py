"""Drives several pipelines of one service without pause, checks their rows, and watches what must not only grow."""
