"""What the service, its hosts and its clients agree on: statuses, configurations, statistics, problems, rows of the store."""
