"""Stream programs to start from. Each runs by itself: ``python examples/word_count.py``."""
