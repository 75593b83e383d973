"""Tables of Delta Lake, read and written with the ``deltalake`` package."""
