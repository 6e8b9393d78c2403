"""The report of a build."""
