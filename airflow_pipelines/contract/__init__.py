"""The contract of the service, its hosts and its clients: statuses, configurations, statistics, problems, rows of the store."""
