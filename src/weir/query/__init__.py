"""What is asked: from text and schemas to a checked `Query`."""
