"""The join itself."""
