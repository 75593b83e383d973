"""Files, on this machine or on others: their file systems, compression, and the reasons why they cannot be read."""
