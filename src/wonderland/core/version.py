"""The version of the package, which files tell the reader."""

__version__ = "0.1.0"
