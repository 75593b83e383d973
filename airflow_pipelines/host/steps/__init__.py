"""The pipeline that runs steps: transactions, saving, and recovery from saved state."""
