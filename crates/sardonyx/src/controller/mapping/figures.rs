//! Figures that mappings share: what deduplication saves, and what its tables cost.

use crate::figures::figures;

figures! { "Deduplication";
    DUPLICATE_WRITES: Count More "duplicate_writes",
        "writes that stored no line, because the memory had an equal one";
    AMT_HIT_RATE: Ratio More "amt_hit_rate",
        "share of look-ups in the cache of the address mapping table that hit";
    COLLISIONS: Count Less "collisions", "lines compared because of equal fingerprints, that were not equal";
    LEAKED_LINES: Count Less "leaked_lines", "places in the medium that can never be freed, their count being full";
    METADATA_BYTES: Bytes Less "metadata_bytes",
        "bytes of the tables, an entry for every mapped line, as ESD and DeWrite count them";
    METADATA_BYTES_IN_USE: Bytes Less "metadata_bytes_in_use", "bytes of the entries in use";
    METADATA_BYTES_PER_LINE: Bytes Less "metadata_bytes_per_line", "bytes of the tables for one mapped line";
}
