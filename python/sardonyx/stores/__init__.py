"""What the commands of deduplicating stores do: compare, serve and check them, and estimate."""
