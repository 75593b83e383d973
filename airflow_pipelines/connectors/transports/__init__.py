"""Transports, one module each: they read the bytes of inputs and write those of outputs."""
