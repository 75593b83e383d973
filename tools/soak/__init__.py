"""A soak test that drives several pipelines of one service without pause, checks their rows, and watches figures for growth."""
