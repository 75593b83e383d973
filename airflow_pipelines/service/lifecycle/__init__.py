"""The state machine: pure functions from a record and an event to the next record, or to the Problem that forbids it.

Nothing here reads a clock, a database or a host. Each function makes one step, which the store records as one event.
"""
