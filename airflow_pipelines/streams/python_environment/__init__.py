"""The Python that a program's functions run with: an interpreter, packages, modules and unpacked archives, cached by content."""
