"""The way of a stream program into a pipeline: its file is executed once, and described instead of run."""
