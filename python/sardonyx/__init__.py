"""Sardonyx: a simulator of persistent, encrypted, deduplicated main memory.

``compare`` runs designs on traces and gives results that turn into a data frame; the command line
(``sardonyx``) does the same. The simulator itself is the native module ``sardonyx._core``.
"""

from sardonyx._core import VERSION as __version__
from sardonyx._core import SardonyxError
from sardonyx.api import DESIGNS, compare, designs, machines, synth
from sardonyx.results import Results

__all__ = [
    "DESIGNS",
    "Results",
    "SardonyxError",
    "__version__",
    "compare",
    "designs",
    "machines",
    "synth",
]
