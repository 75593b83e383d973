"""Decorators that turn functions into tasks."""
