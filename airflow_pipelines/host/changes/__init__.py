"""Changes of programs: plans and their approval."""
