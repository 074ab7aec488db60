//! Modules in parallel: operations begin in their order, a search needs all modules, everything else
//! one. With one module the time that passes is the sum of all cycles, as Sec. III-C counts.

#[derive(Clone, Debug)]
pub struct Modules {
    free: Vec<u64>,
    began: u64,
}

impl Modules {
    pub fn new(modules: usize) -> Modules {
        Modules {
            free: vec![0; modules],
            began: 0,
        }
    }

    pub fn all(&mut self, cycles: u64) {
        let begin = self.elapsed();
        self.free.fill(begin + cycles);
        self.began = begin;
    }

    pub fn one(&mut self, module: usize, cycles: u64) {
        let begin = self.free[module].max(self.began);
        self.free[module] = begin + cycles;
        self.began = begin;
    }

    /// Adds cycles of the translation table only, on behalf of the module that is free first.
    pub fn table(&mut self, cycles: u64) {
        let first = (0..self.free.len()).min_by_key(|&module| self.free[module]);
        self.one(first.expect("a module"), cycles);
    }

    pub fn elapsed(&self) -> u64 {
        *self.free.iter().max().expect("a module")
    }
}
