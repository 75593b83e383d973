"""The Python with which a program's functions run: an interpreter, packages, modules and unpacked archives, cached by content."""
