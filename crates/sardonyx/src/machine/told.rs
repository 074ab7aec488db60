//! An outcome's figures and costs as JSON, by name: for whoever asks from outside of Rust.

use serde_json::{Map, Value, json};

use super::outcome::{self, Outcome};
use crate::stats::{Account, Cause};

impl Outcome {
    /// The figures by name; null where one does not apply.
    pub fn metrics(&self) -> Map<String, Value> {
        let figures = self.figures.iter();
        let figures = figures.map(|(figure, amount)| (figure.name, json!(amount)));
        let speed = (outcome::HOST_SPEED.name, json!(self.host_speed.0));
        let all = figures.chain([speed]);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// What each cause has cost, if anything.
    pub fn costs(&self) -> Map<String, Value> {
        let ledger = &self.ledger;
        let all = Cause::ALL
            .into_iter()
            .map(|cause| (cause, ledger.total(cause)));
        let costly = all.filter(|(_, account)| *account != Account::default());
        let told = costly.map(|(cause, a)| {
            let served = ledger.served(cause);
            let served =
                served.map(|(whom, latency)| (whom.name().to_owned(), json!(latency.ns())));
            let told = json!({
                "latency_ns": (a.read_latency + a.write_latency).ns(),
                "write_latency_ns": a.write_latency.ns(),
                "read_latency_ns": a.read_latency.ns(),
                "wait_ns": a.wait.ns(),
                "energy_nj": a.energy.nj(),
                "medium_reads": a.medium_reads,
                "medium_writes": a.medium_writes,
                "unit_uses": a.unit_uses,
                "latency_ns_for": served.collect::<Map<_, _>>(),
            });
            (cause.name().to_owned(), told)
        });
        told.collect()
    }
}
