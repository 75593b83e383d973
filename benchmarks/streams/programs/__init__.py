"""Stream programs that are deployed; each is the first file of its program."""
