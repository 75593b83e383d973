"""Brings pipelines from the state they are in to the state that is desired.

Truth is in the store only. Whatever is done here may be done by any service process, may be cut off anywhere by a kill, and is then
taken up by whoever looks next: every step is a compare-and-swap, every call to a host may be repeated.
"""
