"""The project folder: desired state as files, read and written."""
