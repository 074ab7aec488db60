"""What figures are made of: heads, views, tables, colours. Reports and papers draw with it."""
