"""The SQL front end: compiles the text of a program, with Spark's analyzer, into stages that the engine runs."""
