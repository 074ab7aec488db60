//! What the commands of this door are asked.
use sardonyx_merge::images::mixes::Mix;
use sardonyx_question::{Given, Names, Pairs, Place, Question, question};

question! {
    /// Say what same-page merging costs applications, on a memory of each design.
    ///
    /// Example: sardonyx merge time silo --memory no-encryption,sca,esd --quick
    pub struct MergeTime {
        /// Of img_dnn, masstree, moses, silo, sphinx; default: all of them.
        #[schemars(extend("argument" = "APPLICATION.."))]
        applications: Vec<String>,
        /// What merges: none,ksm,pageforge, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Names = Names::of("none,ksm,pageforge"),
        /// The designs of the memory under the applications, separated by commas: names, or LOGGING/MAPPING+POLICY as
        /// in esd+sca.
        memory: Names = Names::of("no-encryption"),
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m", "format" = "machine"))]
        machine: String = "pageforge".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// A window of 40 ms in place of 400, smaller machines.
        quick: bool,
        /// Seed of machines and queries.
        seed: u64,
        /// Runs at once; default: one a core.
        #[schemars(range(min = 1, max = 1024), extend("short" = "j"))]
        jobs: Option<u64>,
    }
}

question! {
    /// Make a folder of snapshots of a generated machine.
    ///
    /// Example: sardonyx merge generate cow images/cow --pages 4096 --passes 14
    pub struct MergeGenerate {
        /// What the pages hold: paper, volatile, cow, ..
        #[schemars(extend("argument" = "MIX", "needed" = true))]
        mix: String,
        /// The folder of snapshots to make.
        #[schemars(extend("argument" = "PATH", "needed" = true))]
        target: Place,
        /// Pages.
        #[schemars(range(min = 8, max = 2147483647))]
        pages: u64 = 4096,
        /// Snapshots.
        #[schemars(range(min = 1, max = 10000))]
        passes: u64 = 1,
    }
}

impl Question for MergeTime {}

impl Question for MergeGenerate {
    fn check(&self, _given: &Given) -> Result<(), String> {
        let (mix, target) = (&self.mix, &self.target);
        let known = Mix::ALL.map(Mix::name);
        if !known.contains(&mix.as_str()) {
            let known = known.join(", ");
            return Err(format!("{mix}: there is no such mix; they are {known}"));
        }
        if target.exists() {
            let target = target.display();
            return Err(format!(
                "{target}: is there already; name a folder that is not"
            ));
        }
        Ok(())
    }
}
