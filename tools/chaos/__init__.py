"""A test that kills a running pipeline repeatedly, at named points and at random, and compares its rows with those acknowledged."""
