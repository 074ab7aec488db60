"""Programs whose power is cut everywhere, under designs: what is left, and what is recovered."""
