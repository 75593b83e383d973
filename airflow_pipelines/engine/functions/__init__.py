"""Functions that Python implements: a program's own, and VALUE_BYTES."""
