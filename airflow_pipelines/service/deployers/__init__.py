"""The placement of incarnations: on the store's one shared host, or each on a host of its own."""
