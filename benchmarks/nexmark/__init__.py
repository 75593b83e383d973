"""Nexmark, the auction benchmark for queries over streams: its events, its queries, and the systems it is run on."""
