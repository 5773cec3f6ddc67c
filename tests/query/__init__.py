"""Tests of units and queries."""
