"""HTTP serving for the service and the hosts: bounds on requests, the server, segments of paths."""
