"""Stream programs, next to other systems that run the same ones."""
