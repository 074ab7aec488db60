//! The processes of a program that forked, whose events come in one order: the numbers that their threads, sites and
//! files have in the trace. A child knows what its parent knew when it was forked, and counts on from there on its own.

use rustc_hash::FxHashMap;
use sardonyx_recorder::maps::{FILE_LINES, FILES};
use serde_json::{Value, json};

#[derive(Clone, Debug, Default)]
struct Member {
    number: usize,
    threads: FxHashMap<u16, u16>,
    sites: Vec<u32>,
    files: Vec<u64>,
    /// The trace's numbers of the programs that it was; the last is the present one.
    programs: Vec<u32>,
    /// The program that it became and that is not recorded, unless it did something after that.
    lost: Option<String>,
}

#[derive(Debug, Default)]
pub struct Family {
    members: FxHashMap<u32, Member>,
    current: u32,
    first: Option<u32>,
    threads: u16,
    sites: u32,
    files: u64,
    programs: u32,
    told: Vec<Value>,
}

impl Family {
    pub fn is_first(&self) -> bool {
        self.first.is_none_or(|first| first == self.current)
    }

    pub fn turn(&mut self, process: u32) {
        if self.first.is_none() {
            // All events until now were the first process's.
            self.first = Some(process);
            let first = Member {
                threads: (0..self.threads).map(|thread| (thread, thread)).collect(),
                sites: (0..self.sites).collect(),
                files: (0..self.files).collect(),
                programs: (0..=self.programs).collect(),
                ..Member::default()
            };
            self.members.insert(process, first);
            self.told.push(json!({}));
        }
        self.current = process;
    }

    /// Notes that a child process begins after this many records; it knows this many sites, files and programs of its
    /// parent.
    pub fn child(
        &mut self,
        process: u32,
        parent: u32,
        (sites, files, execs): (u32, u32, u32),
        row: u64,
    ) {
        let known = self.members.get(&parent).cloned().unwrap_or_default();
        let member = Member {
            number: self.told.len(),
            threads: FxHashMap::default(),
            sites: first(&known.sites, sites),
            files: first(&known.files, files),
            programs: first(&known.programs, execs + 1),
            lost: None,
        };
        self.told
            .push(json!({"row": row, "parent": known.number, "threads": []}));
        self.members.insert(process, member);
        self.current = process;
    }

    /// Notes that another process forked this one, which may not have sent anything yet.
    pub fn forked(&mut self, process: u32) {
        self.members.entry(process).or_insert_with(|| Member {
            number: usize::MAX,
            ..Member::default()
        });
    }

    fn member(&mut self) -> Option<&mut Member> {
        self.first?;
        self.members.get_mut(&self.current)
    }

    #[inline]
    pub fn thread(&mut self, thread: u16) -> u16 {
        if self.first.is_none() {
            self.threads = self.threads.max(thread + 1);
            return thread;
        }
        self.thread_of_several(thread)
    }

    fn thread_of_several(&mut self, thread: u16) -> u16 {
        let next = self.threads;
        let Some(member) = self.member() else {
            return thread;
        };
        let number = *member.threads.entry(thread).or_insert(next);
        let process = member.number;
        if number == next {
            self.threads = next.saturating_add(1);
            let told = self.told.get_mut(process);
            let threads = told.and_then(|told| told.get_mut("threads")?.as_array_mut());
            if let Some(threads) = threads {
                threads.push(number.into());
            }
        }
        number
    }

    #[inline]
    pub fn site(&mut self, site: u32) -> u32 {
        let known = self.member().map(|member| &member.sites);
        known.map_or(site, |sites| {
            sites.get(site as usize).copied().unwrap_or(site)
        })
    }

    pub fn new_site(&mut self) {
        let number = self.sites;
        self.sites += 1;
        if let Some(member) = self.member() {
            member.sites.push(number);
        }
    }

    pub fn new_file(&mut self, number: u64) {
        self.files = self.files.max(number + 1);
        if let Some(member) = self.member() {
            member.files.push(number);
        }
    }

    #[inline]
    pub fn line(&mut self, line: u64) -> u64 {
        if line < FILES || self.first.is_none() {
            return line;
        }
        let (number, within) = ((line - FILES) / FILE_LINES, (line - FILES) % FILE_LINES);
        let known = self.member().and_then(|m| m.files.get(number as usize));
        FILES + known.copied().unwrap_or(number) * FILE_LINES + within
    }

    /// Notes that the process became a program that is not recorded; `None` says that it did something afterwards, so
    /// it did not.
    pub fn lost(&mut self, path: Option<String>) {
        if let Some(member) = self.member() {
            member.lost = path;
        }
    }

    pub fn became(&mut self, path: &str, row: u64) {
        self.programs += 1;
        let program = self.programs;
        let Some(member) = self.member() else { return };
        member.programs.push(program);
        let process = member.number;
        if let Some(told) = self.told.get_mut(process).filter(|_| process > 0) {
            let execs = &mut told["execs"];
            match execs.as_array_mut() {
                Some(execs) => execs.push(json!([row, path])),
                None => *execs = json!([[row, path]]),
            }
        }
    }

    /// The number in the trace of the program that the process runs.
    pub fn program(&mut self) -> u32 {
        let all = self.programs;
        let member = self.member();
        member.map_or(all, |member| member.programs.last().copied().unwrap_or(all))
    }

    /// Processes other than the first, without those that became programs that are not recorded.
    pub fn children(&self) -> impl Iterator<Item = u32> + '_ {
        let others = (self.members.iter()).filter(|(process, _)| Some(**process) != self.first);
        let here = others.filter(|(_, member)| member.lost.is_none());
        here.map(|(process, _)| *process)
    }

    pub fn forks(&self) -> u32 {
        (self.members.len() as u32).saturating_sub(1)
    }

    /// The processes, for the provenance; empty if there is only one.
    pub fn told(&mut self) -> Vec<Value> {
        for member in self.members.values() {
            if let (Some(path), Some(told)) = (&member.lost, self.told.get_mut(member.number)) {
                told["became"] = path.as_str().into();
            }
        }
        match self.told.len() {
            0 | 1 => Vec::new(),
            _ => std::mem::take(&mut self.told),
        }
    }

    pub fn note(&self) -> Option<String> {
        let first = self.first?;
        let others = self.members.iter().filter(|(p, _)| **p != first);
        let mut became: Vec<&str> = others.filter_map(|(_, m)| m.lost.as_deref()).collect();
        let count = became.len();
        became.sort_unstable();
        became.dedup();
        let more = if became.len() > 3 { ", .." } else { "" };
        became.truncate(3);
        (count > 0).then(|| {
            format!(
                "{count} child process{} became another program ({}{more}), which ran unrecorded",
                if count == 1 { "" } else { "es each" },
                became.join(", ")
            )
        })
    }
}

fn first<T: Copy>(known: &[T], count: u32) -> Vec<T> {
    known[..known.len().min(count as usize)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A family of a process 10 with two threads, three sites and a file.
    fn family() -> Family {
        let mut family = Family::default();
        (0..2).for_each(|thread| assert_eq!(family.thread(thread), thread));
        (0..3).for_each(|_| family.new_site());
        family.new_file(0);
        family.turn(10);
        family
    }

    #[test]
    fn a_child_knows_what_its_parent_knew_and_counts_on_by_itself() {
        let mut family = family();
        family.child(11, 10, (3, 1, 0), 5);
        assert_eq!(family.thread(1), 2);
        assert_eq!((family.site(2), family.line(FILES + 7)), (2, FILES + 7));
        family.new_site(); // the trace's 3
        family.new_file(1);
        family.turn(10);
        assert_eq!((family.thread(1), family.thread(2)), (1, 3));
        family.new_site(); // the trace's 4
        family.new_file(2);
        assert_eq!(family.site(3), 4);
        assert_eq!(family.line(FILES + FILE_LINES), FILES + 2 * FILE_LINES);
        // A grandchild is forked from the time before the child's own records.
        family.child(12, 11, (3, 1, 0), 9);
        family.new_site();
        assert_eq!((family.site(3), family.thread(1)), (5, 4));
        family.turn(11);
        assert_eq!((family.site(3), family.thread(1)), (3, 2));
        assert_eq!(family.line(FILES + FILE_LINES), FILES + FILE_LINES);
        let told = family.told();
        assert_eq!(told[1], json!({"row": 5, "parent": 0, "threads": [2]}));
        assert_eq!(told[2], json!({"row": 9, "parent": 1, "threads": [4]}));
    }

    #[test]
    fn a_number_of_a_process_that_is_gone_may_be_anothers() {
        let mut family = family();
        family.child(11, 10, (3, 1, 0), 0);
        assert_eq!(family.thread(0), 2);
        family.lost(Some("/bin/ls".to_owned()));
        assert_eq!(family.children().count(), 0);
        family.child(11, 10, (3, 1, 0), 0);
        assert_eq!(family.thread(0), 3);
        assert_eq!(family.children().collect::<Vec<_>>(), [11]);
    }

    #[test]
    fn a_child_is_the_program_that_its_parent_was() {
        let mut family = Family::default();
        family.became("b", 1);
        family.turn(10);
        assert_eq!(family.program(), 1);
        family.became("c", 2);
        // It was forked before its parent became that program.
        family.child(11, 10, (0, 0, 1), 3);
        assert_eq!(family.program(), 1);
        family.became("d", 4);
        assert_eq!(family.program(), 3);
        family.turn(10);
        assert_eq!(family.program(), 2);
        assert_eq!(family.told()[1]["execs"], json!([[4, "d"]]));
    }

    #[test]
    fn one_process_is_as_it_says() {
        let mut family = Family::default();
        family.new_site();
        family.new_file(0);
        assert_eq!((family.thread(7), family.site(9)), (7, 9));
        assert_eq!(family.line(FILES + FILE_LINES), FILES + FILE_LINES);
        assert!(family.told().is_empty() && family.is_first());
    }
}
