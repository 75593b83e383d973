"""The text of a program: tokens, names, statements and their places."""
