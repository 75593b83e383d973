"""The pipeline that runs steps: transactions, saving, and going on from what was saved."""
