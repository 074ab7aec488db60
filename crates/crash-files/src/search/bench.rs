//! One worker's folder, where it makes images and runs the recovery on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sardonyx_crash_test::recovery::ending::Ended;
use sardonyx_crash_test::recovery::left_behind::LeftBehind;
use sardonyx_crash_test::recovery::opened_files::{PATIENCE, opened};
use sardonyx_crash_test::recovery::{Recovery, RecoveryFiles, said};
use sardonyx_crash_test::{CrashTestError, Result};

use crate::image_choice::FolderImage;
use crate::model::{EffectKind, Model};
use crate::recording::RecordedRun;
use crate::tree::FileTree;

pub struct Case {
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

    /// Runs the recovery on a folder, with the text that was printed before a cut.
    ///
    /// # Errors
    /// There is no room, or the recovery cannot be started.
    pub fn run(&mut self, tree: &FileTree, cut: u32, time: Duration) -> Result<(Ended, String)> {
        let place = self.folder.join("files");
        let failed = || CrashTestError::io(place.display());
        clear(&place).map_err(failed())?;
        tree.put(&place).map_err(failed())?;
        let (acks, output) = (self.folder.join("acks"), self.folder.join("output"));
        let printed = &self.case.acks[..self.case.acked[cut as usize]];
        fs::write(&acks, printed).map_err(CrashTestError::io(acks.display()))?;
        let given = RecoveryFiles {
            pools: &[],
            folder: &place,
            acks: &acks,
        };
        let ended = self.case.recovery.run(given, &output, time)?;
        self.left.ran();
        Ok((ended, said(&output)))
    }

    /// Whether the recovery opens a file of a folder; true if that cannot be seen.
    ///
    /// # Errors
    /// There is no room.
    pub fn opens_a_file(&mut self, tree: &FileTree) -> Result<bool> {
        let place = self.folder.join("files");
        let failed = || CrashTestError::io(place.display());
        clear(&place).map_err(failed())?;
        tree.put(&place).map_err(failed())?;
        let given = RecoveryFiles {
            pools: &[],
            folder: &place,
            acks: &self.folder.join("acks"),
        };
        let command = self.case.recovery.command(given);
        let opened = opened(&command, &[], (&place, &tree.files(&place)), PATIENCE);
        Ok(opened.copies.is_none_or(|seen| seen.contains(&true)))
    }
}

/// Removes what the last recovery left, also if it took away its own permissions.
fn clear(place: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(place) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
