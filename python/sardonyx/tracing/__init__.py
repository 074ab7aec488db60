"""Traces: what is in them, copies, mixes and conversions of them, and recording programs."""
