//! The lines that a place of the medium can affect, in a design whose lines do not lie at their own places: the mapping
//! table, read from the bytes that a cut leaves and kept up to date.
//!
//! A line's content follows from its entry in the table, from the place that the entry names and from that place's
//! counter. So a change of any other byte cannot change it.

use rustc_hash::FxHashMap;

use crate::history::History;
use crate::platform::Changed;
use sardonyx::controller::layers::Entries;
use sardonyx::controller::layers::Placement;
use sardonyx::line::{Line, Place, ZERO_LINE};
use sardonyx::medium::image::Image;

pub struct Mapped {
    entries: Entries,
    place_of: FxHashMap<u64, Place>,
    lines_at: FxHashMap<u64, Vec<u64>>,
}

impl Mapped {
    /// The table in `image`; `None` if the design has no table.
    pub fn new(history: &History, image: &Image) -> Option<Mapped> {
        let entries = match &history.placement {
            Placement::Table(entries) => entries.clone(),
            _ => return None,
        };
        let region = entries.region.clone();
        let mut mapped = Mapped {
            entries,
            place_of: FxHashMap::default(),
            lines_at: FxHashMap::default(),
        };
        for table in image.written_in(&region) {
            let line = image.read(table).unwrap_or(ZERO_LINE);
            mapped.update(table, &line, &mut Vec::new());
        }
        Some(mapped)
    }

    /// Notes the `changed` places of `image`, and appends the lines that this can make read otherwise.
    pub fn follow(
        &mut self,
        history: &History,
        image: &Image,
        changed: &[Changed],
        about: &mut Vec<u64>,
    ) {
        let region = self.entries.region.clone();
        for change in changed {
            if let Changed::Words(place, _) = change
                && (region.first.0..region.first.0 + region.lines).contains(&place.0)
                && let Some(line) = image.read(*place)
            {
                self.update(*place, &line, about);
            }
        }
        // Tables come first, so that a place is about the lines that it holds now.
        for change in changed {
            match *change {
                Changed::Drained(line) => about.push(line.0),
                Changed::Words(place, words) => {
                    about.extend(self.at(place));
                    for place in history.covered(place, words) {
                        about.extend(self.at(place));
                    }
                }
            }
        }
    }

    pub fn at(&self, place: Place) -> &[u64] {
        self.lines_at.get(&place.0).map_or(&[], Vec::as_slice)
    }

    fn update(&mut self, table: Place, bytes: &Line, moved: &mut Vec<u64>) {
        for (line, place) in self.entries.read(table, bytes) {
            let old = self.place_of.get(&line.0).copied();
            if old == place {
                continue;
            }
            moved.push(line.0);
            if let Some(old) = old {
                let lines = self.lines_at.get_mut(&old.0).expect("it lies there");
                lines.retain(|known| *known != line.0);
            }
            match place {
                Some(place) => {
                    self.place_of.insert(line.0, place);
                    self.lines_at.entry(place.0).or_default().push(line.0);
                }
                None => {
                    self.place_of.remove(&line.0);
                }
            }
        }
    }
}
