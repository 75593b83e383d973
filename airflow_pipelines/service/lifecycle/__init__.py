"""The state machine: pure functions from a record and what happened to the next record, or the Problem that forbids it.

Nothing here reads a clock, a database or a host. Each function makes one step, which the store records as one event.
"""
