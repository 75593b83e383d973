"""What every connector has to do. A connector passes with a small case that says how its system is filled, read and taken away."""
