//! Owners of machines, who may not see each other's pages, and the way in which progress is told.

/// Some machines of one owner.
#[derive(Clone, Debug)]
pub struct Owner {
    pub name: String,
    pub machines: Vec<usize>,
}

/// Takes the amount done and the total, 0 for an unknown total; false ends the run.
pub type Tell<'t> = &'t mut dyn FnMut(u64, u64) -> bool;
