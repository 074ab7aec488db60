//! One worker's folder, where it makes images and runs the recovery on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sardonyx_crash_test::recovery::ending::Ended;
use sardonyx_crash_test::recovery::left_behind::LeftBehind;
use sardonyx_crash_test::recovery::opened_files::{PATIENCE, opened};
use sardonyx_crash_test::recovery::{Recovery, RecoveryFiles, said};
use sardonyx_crash_test::search::clock::Clock;
use sardonyx_crash_test::{CrashTestError, Result};

use crate::image_choice::FolderImage;
use crate::model::{EffectKind, Model};
use crate::recording::RecordedRun;
use crate::tree::FileTree;

pub struct Case {
    pub clock: Clock,
    pub recording: RecordedRun,
    pub model: Model,
    pub recovery: Recovery,
    /// The printed text, and the part of it before each cut.
    pub acks: Vec<u8>,
    pub acked: Vec<usize>,
}

pub struct Bench<'a> {
    case: &'a Case,
    folder: PathBuf,
    left: LeftBehind,
    /// A cut, and the tree of what is sure there.
    floor: (u32, FileTree),
}

impl<'a> Bench<'a> {
    /// Makes a bench in a folder that does not exist yet.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(case: &'a Case, folder: &Path) -> Result<Bench<'a>> {
        fs::create_dir(folder).map_err(CrashTestError::io(folder.display()))?;
        Ok(Bench {
            case,
            folder: folder.to_owned(),
            left: LeftBehind::of_folder(&folder.join("files")),
            floor: (0, case.recording.start.clone()),
        })
    }

    pub fn tree(&mut self, image: &FolderImage) -> FileTree {
        let (recording, model) = (&self.case.recording, &self.case.model);
        let operations = &recording.operations;
        if image.cut < self.floor.0 {
            self.floor = (0, recording.start.clone());
        }
        let (at, floor) = &mut self.floor;
        for sure in &model.made_sure[*at as usize..image.cut as usize] {
            for &number in sure {
                model.effects[number as usize].apply(operations, floor, false);
            }
        }
        *at = image.cut;
        let mut tree = floor.clone();
        let mut apply = |number: u32, stale| {
            model.effects[number as usize].apply(operations, &mut tree, stale);
        };
        if !image.stale {
            image
                .present
                .iter()
                .for_each(|&number| apply(number, false));
            return tree;
        }
        for number in model.optional(image.cut) {
            let what = &model.effects[number as usize].what;
            match image.present.binary_search(&number) {
                Ok(_) => apply(number, false),
                Err(_) if matches!(what, EffectKind::Data { fresh: true, .. }) => {
                    apply(number, true)
                }
                Err(_) => {}
            }
        }
        tree
    }

    /// Runs the recovery on a folder, with the text that was printed before a cut, within some time and the budget.
    ///
    /// # Errors
    /// There is no room; the recovery cannot be started; the budget ended before it did.
    pub fn run(&mut self, tree: &FileTree, cut: u32, time: Duration) -> Result<(Ended, String)> {
        let clock = &self.case.clock;
        let place = self.put(tree)?;
        let allowed = clock.allows(time);
        if clock.is_spent() {
            return Err(CrashTestError::Late);
        }
        let (acks, output) = (self.folder.join("acks"), self.folder.join("output"));
        self.put_acks(&acks, cut)?;
        let given = RecoveryFiles {
            pools: &[],
            folder: &place,
            acks: &acks,
        };
        let ended = self.case.recovery.run(given, &output, allowed)?;
        self.left.ran();
        match ended {
            Ended::TimedOut if allowed < time => Err(CrashTestError::Late),
            _ => Ok((ended, said(&output))),
        }
    }

    /// Makes the folder of images hold a tree. Returns its path.
    fn put(&self, tree: &FileTree) -> Result<PathBuf> {
        let place = self.folder.join("files");
        let on = || !self.case.clock.is_spent();
        let put = || clear(&place).and_then(|()| tree.put(&place, &on));
        match (put(), on()) {
            (Ok(()), _) => Ok(place),
            (Err(_), false) => Err(CrashTestError::Late),
            (Err(e), true) => Err(CrashTestError::io(place.display())(e)),
        }
    }

    /// Whether the recovery opens a file of a folder, and whether the text that was printed before a cut; true if that
    /// cannot be seen.
    ///
    /// # Errors
    /// There is no room.
    pub fn opens(&mut self, tree: &FileTree, cut: u32) -> Result<(bool, bool)> {
        let place = self.put(tree)?;
        let acks = self.folder.join("acks");
        self.put_acks(&acks, cut)?;
        let given = RecoveryFiles {
            pools: &[],
            folder: &place,
            acks: &acks,
        };
        let command = self.case.recovery.command(given);
        let acks = self.case.recovery.names_acks().then_some(acks.as_path());
        let files = tree.files(&place);
        let time = self.case.clock.allows(PATIENCE);
        let limits = (time, &self.case.recovery.interrupt);
        let opened = opened(&command, &[], (&place, &files), acks, limits);
        let file = opened.copies.is_none_or(|seen| seen.contains(&true));
        Ok((file, opened.acks.unwrap_or(true)))
    }

    fn put_acks(&self, place: &Path, cut: u32) -> Result<()> {
        let printed = &self.case.acks[..self.case.acked[cut as usize]];
        fs::write(place, printed).map_err(CrashTestError::io(place.display()))
    }
}

/// Removes what the last recovery left, also if it took away its own permissions.
fn clear(place: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(place) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
