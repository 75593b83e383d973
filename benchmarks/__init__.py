"""Side-by-side measurements; `make bench` runs them. They print ratios and are not tests."""
