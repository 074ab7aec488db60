"""What the commands of traces do: record, look at, check, convert, generate, cut and mix them."""
