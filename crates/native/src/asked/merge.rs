//! What the commands of this door are asked.
use std::net::SocketAddr;

use sardonyx_merge::advice::Target;
use sardonyx_merge::images::mixes::Mix;
use sardonyx_question::{Bytes, Given, Names, Pairs, Place, Question, question};

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
    /// Watch live processes: what merging saves, what it could, at what cost, and what to set. It changes nothing.
    ///
    /// Example: sardonyx merge watch --named 'qemu*' --listen 127.0.0.1:9105
    pub struct MergeWatch {
        /// A live process; repeatable.
        #[schemars(inner(range(min = 1)))]
        pid: Vec<u32>,
        /// Processes whose name matches this pattern, looked for in each round; repeatable.
        #[schemars(extend("value" = "PATTERN"))]
        named: Vec<String>,
        /// Only mappings that they have offered for merging, which are all that the kernel merges.
        offered: bool,
        /// Seconds between two rounds, at least.
        #[schemars(range(min = 0, max = 86400))]
        every: f64 = 60.0,
        /// Seconds between the two snapshots of a round: pages that change in between are not merged.
        #[schemars(range(min = 0, max = 3600))]
        apart: f64 = 1.0,
        /// Percent of a core that it takes at most: rounds come as far apart as that needs.
        #[schemars(range(min = 0.01, max = 100))]
        share: f64 = 1.0,
        /// End after so many rounds; default: at Ctrl-C.
        #[schemars(range(min = 1))]
        rounds: Option<u64>,
        /// Serve metrics for Prometheus and a page there: ADDRESS:PORT.
        #[schemars(extend("value" = "ADDRESS:PORT"))]
        listen: Option<String>,
        /// Write the metrics to this file in each round, for the collector of text files.
        textfile: Option<Place>,
        /// Memory for copies of pages; beyond it pages are known by digests.
        memory: Bytes = Bytes(1 << 26),
        /// Recommend settings for a pass within N seconds.
        #[schemars(range(min = 1, max = 1_000_000))]
        pass_in: u64 = Target::default().pass_seconds,
        /// Recommend settings for at most N % of a core; goes before --pass-in.
        #[schemars(range(min = 1, max = 100))]
        at_most: u64 = Target::default().core_percent,
    }
}

impl Question for MergeWatch {
    fn check(&self, _given: &Given) -> Result<(), String> {
        if self.pid.is_empty() && self.named.is_empty() {
            return Err("no process: give --pid N, or --named PATTERN".to_owned());
        }
        match &self.listen {
            Some(listen) if listen.parse::<SocketAddr>().is_err() => Err(format!(
                "--listen {listen}: give an address and a port, as in 127.0.0.1:9105"
            )),
            _ => Ok(()),
        }
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
