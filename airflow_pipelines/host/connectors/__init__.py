"""The connectors that a program declares, as inputs and outputs of a pipeline."""
