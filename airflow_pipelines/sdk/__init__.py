"""The SDK: clients of a service, pipelines as objects, and the errors that both raise."""
