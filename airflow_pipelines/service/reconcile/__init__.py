"""The reconciliation of pipelines: brings them from their present state to the desired one.

The truth is in the store only. Any service process may do any step; a kill may interrupt it anywhere, and then the next process
that looks continues. So every step is a compare-and-swap, and every call to a host may be repeated.
"""
