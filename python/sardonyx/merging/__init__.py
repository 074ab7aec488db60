"""Merging equal pages: what it saves (``merge``), and what it costs (``time``)."""
