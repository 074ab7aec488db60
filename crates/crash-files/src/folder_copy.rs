//! A worker's private folder, which becomes one image after another.

use std::fs;
use std::path::{Path, PathBuf};

use sardonyx_crash_test::recovery::RecoveryFiles;
use sardonyx_crash_test::recovery::bench::{Bench, ImageCopy, Trial};
use sardonyx_crash_test::recovery::touched::TouchedPages;
use sardonyx_crash_test::{CrashTestError, Result};

use crate::image_choice::FolderImage;
use crate::model::{EffectKind, Model};
use crate::operations::Act;
use crate::recording::RecordedRun;
use crate::tree::FileTree;

/// A recorded run, and the recovery that is tried on what a cut may leave of it.
pub struct Case {
    pub trial: Trial,
    pub recording: RecordedRun,
    pub model: Model,
    /// The number of bytes that had been printed before each cut.
    acked: Vec<usize>,
}

impl Case {
    pub fn new(mut trial: Trial, recording: RecordedRun, model: Model) -> Case {
        let mut acked = vec![0];
        for operation in &recording.operations {
            if let Act::Acknowledge { text } = &operation.act {
                trial.printed.extend_from_slice(text);
            }
            acked.push(trial.printed.len());
        }
        Case {
            trial,
            recording,
            model,
            acked,
        }
    }

    /// The image of all that the program had done by a cut.
    pub fn whole(&self, cut: u32) -> FolderImage {
        FolderImage {
            cut,
            present: self.model.optional(cut),
            stale: false,
        }
    }

    pub fn last_cut(&self) -> u32 {
        self.recording.operations.len() as u32
    }

    /// The number of bytes that had been printed before a cut.
    pub fn acked(&self, cut: u32) -> usize {
        self.acked[cut as usize]
    }
}

/// Makes the trees of images. From cut to cut only what has become sure is done.
struct Trees<'a> {
    case: &'a Case,
    /// A cut, and the tree of what is sure there.
    floor: (u32, FileTree),
}

impl Trees<'_> {
    fn tree(&mut self, image: &FolderImage) -> FileTree {
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
}

/// A folder that becomes one tree after another.
pub struct FolderCopy<'a> {
    case: &'a Case,
    folder: PathBuf,
}

impl FolderCopy<'_> {
    /// Makes a folder that does not exist hold a tree.
    fn put(&self, tree: &FileTree, folder: &Path) -> Result<()> {
        let on = || !self.case.trial.clock.is_spent();
        match (tree.put(folder, &on), on()) {
            (_, false) => Err(CrashTestError::Late),
            (put, true) => put.map_err(CrashTestError::io(folder.display())),
        }
    }
}

impl ImageCopy for FolderCopy<'_> {
    type Image = FileTree;

    fn make(&mut self, tree: &FileTree) -> Result<()> {
        clear(&self.folder).map_err(CrashTestError::io(self.folder.display()))?;
        self.put(tree, &self.folder)
    }

    /// The next image is made in an empty folder.
    fn restore(&mut self, _: &FileTree, _: &TouchedPages) -> Result<bool> {
        Ok(true)
    }

    fn given<'g>(&'g self, acks: &'g Path) -> RecoveryFiles<'g> {
        RecoveryFiles {
            pools: &[],
            folder: &self.folder,
            acks,
        }
    }

    fn files(&self, tree: &FileTree) -> Vec<PathBuf> {
        let files = tree.files();
        files.map(|(_, path)| self.folder.join(path)).collect()
    }

    fn damage(&mut self, tree: &FileTree, form: u32, folder: &Path) -> Result<Vec<PathBuf>> {
        self.put(&tree.damaged(form), folder)?;
        Ok(Vec::new())
    }

    /// It is saved after the search, when the budget may be spent.
    fn save(&mut self, tree: &FileTree, place: &Path) -> Result<()> {
        let interrupt = &self.case.trial.recovery.interrupt;
        let put = tree.put(place, &|| !interrupt.is_set());
        interrupt.check()?;
        put.map_err(CrashTestError::io(place.display()))
    }
}

/// A worker: the trees of images, and the bench on which the recovery is run on them.
pub struct Worker<'a> {
    trees: Trees<'a>,
    pub bench: Bench<'a, FolderCopy<'a>>,
}

impl<'a> Worker<'a> {
    /// # Errors
    /// The folder exists, or there is no room.
    pub fn new(case: &'a Case, folder: &Path) -> Result<Worker<'a>> {
        let copy = |folder: &Path| {
            let folder = folder.join("files");
            Ok(FolderCopy { case, folder })
        };
        Ok(Worker {
            trees: Trees {
                case,
                floor: (0, case.recording.start.clone()),
            },
            bench: Bench::new(&case.trial, folder, copy)?,
        })
    }

    pub fn tree(&mut self, image: &FolderImage) -> FileTree {
        self.trees.tree(image)
    }
}

/// Removes what the last recovery left, also if it took away its own permissions.
fn clear(place: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(place) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
