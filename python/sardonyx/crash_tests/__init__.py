"""Real programs: their own recovery runs on what each cut could leave of their pools or files."""
