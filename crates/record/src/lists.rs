//! What a recording's provenance lists beside its records: files, modules, sites, texts and the code that ran.

use std::collections::BTreeMap;

use serde_json::{Value, json};

#[derive(Default)]
pub struct ProvenanceLists {
    /// The frames of pages, each after a number of records, if the plugin tells them.
    pub placed: Vec<Value>,
    pub threads: Vec<Value>,
    pub files: Vec<Value>,
    /// Places in the program, each with its caller's number plus 1.
    pub sites: Vec<Value>,
    pub modules: Vec<Value>,
    /// Texts that were written to the descriptor, each after a number of records.
    pub printed: Vec<Value>,
    pub marks: Vec<Value>,
    /// Ranges of records of system calls that make lines sure, from the first to before the second.
    pub syncs: Vec<Value>,
    /// Programs that this one became, each after a number of records.
    pub execs: Vec<Value>,
    /// The site at which each further program begins, with that program's number.
    pub site_programs: Vec<(usize, u32)>,
    /// Code that ran, by the program's number: maps each beginning to the address after the end.
    pub ran: BTreeMap<u32, BTreeMap<u64, u64>>,
}

fn insert(ranges: &mut BTreeMap<u64, u64>, mut start: u64, mut end: u64) {
    while let Some((&from, &to)) = ranges.range(..=end).next_back()
        && to >= start
    {
        ranges.remove(&from);
        (start, end) = (start.min(from), end.max(to));
    }
    ranges.insert(start, end);
}

impl ProvenanceLists {
    /// Notes that code of `program` ran.
    pub fn ran(&mut self, program: u32, start: u64, end: u64) {
        insert(self.ran.entry(program).or_default(), start, end);
    }

    /// The code of mapped files that ran, for each program: its number, the first address, and lengths that ran and did
    /// not run, in turn. Only the number if the program's files are not known.
    pub fn coverage(&self) -> Vec<Value> {
        let told = |(program, ranges): (&u32, &BTreeMap<u64, u64>)| {
            let mut of_files = BTreeMap::new();
            for module in &self.modules {
                if module["of_program"] == json!(program) {
                    let [from, to] = ["start", "end"].map(|key| module[key].as_u64().unwrap_or(0));
                    for (&start, &end) in ranges.range(..to) {
                        if end > from {
                            insert(&mut of_files, start.max(from), end.min(to));
                        }
                    }
                }
            }
            let mut at = of_files.first_key_value().map_or(0, |(start, _)| *start);
            let mut entry = vec![u64::from(*program), at];
            for (start, end) in of_files {
                if start > at {
                    entry.push(start - at);
                }
                entry.push(end - start);
                at = end;
            }
            json!(entry)
        };
        self.ran.iter().map(told).collect()
    }
}
