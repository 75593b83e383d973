"""The syntax of a program's text: tokens, names, statements and their places."""
