"""Queries: build a checked `Query` from SQL text or arguments and the streams' schemas."""
