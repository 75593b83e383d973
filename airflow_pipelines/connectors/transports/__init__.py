"""Transports: where bytes come from and go to. One module each."""
