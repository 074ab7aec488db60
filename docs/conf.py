"""The docs site: Sphinx reads the Markdown of this folder as it is (``make docs``).

A link to a page, or to a heading of one, that is not there is an error of the build.
"""

project = "Sardonyx"
author = "the Sardonyx authors"
copyright = "the Sardonyx authors; Apache License 2.0"  # noqa: A001 - Sphinx's own name
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["figures/**"]
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
myst_update_mathjax = False
html_theme = "furo"
html_title = "Sardonyx"
html_copy_source = False
html_show_sphinx = False
