"""The basics that every process needs: settings, private files, secrets and references to them, the database."""
