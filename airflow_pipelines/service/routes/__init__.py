"""The REST API's endpoints, grouped as the contract groups them."""
