"""HTTP as the service and hosts serve it: bounds on requests, the server, segments of paths."""
