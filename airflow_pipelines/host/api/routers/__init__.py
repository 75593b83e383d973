"""The host's endpoints, one module per subject."""
