"""Which partition each row and each slice belongs to, and how that changes."""
