"""What is known of a plan's relations: whether they only gain rows, until when rows change, what may be forgotten."""
