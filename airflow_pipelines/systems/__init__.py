"""Systems outside of the project, each in a folder: what all interfaces to it have in common."""
