"""From a program's text to what runs: the SQL front end together with Spark's analyzer."""
