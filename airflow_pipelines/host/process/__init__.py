"""The process of a host: its server, its heartbeat, its environment."""
