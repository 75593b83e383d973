"""Time in a circuit: the clock, markers, waterlines and lateness."""
