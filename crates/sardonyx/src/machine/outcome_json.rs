//! An outcome's figures and costs as JSON, by name, for users outside of Rust.

use serde_json::{Map, Value, json};

use super::outcome::{self, Outcome};
use crate::stats::{Account, Cause};

impl Outcome {
    /// The figures by name, null where one does not apply.
    pub fn metrics(&self) -> Map<String, Value> {
        let figures = self.figures.iter();
        let figures = figures.map(|(figure, amount)| (figure.name, json!(amount)));
        let speed = (outcome::HOST_SPEED.name, json!(self.host_speed.0));
        let all = figures.chain([speed]);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The figures over time: the begin and the length of epochs, and a list for each figure; null for a sample.
    pub fn epochs(&self) -> Value {
        let Some((series, _)) = &self.over_time else {
            return Value::Null;
        };
        let columns = series.columns.iter();
        let columns = columns.map(|(name, values)| (name.clone(), json!(values)));
        json!({
            "begin_ns": series.begin.ns(),
            "width_ns": series.width.ns(),
            "columns": columns.collect::<Map<_, _>>(),
        })
    }

    /// The use of banks, buses, queues and units, and the wear of lines; null for a sample.
    pub fn usage(&self) -> Value {
        let Some((_, usage)) = &self.over_time else {
            return Value::Null;
        };
        let units = usage.units.iter();
        let units =
            units.map(|(name, uses, share)| json!({"name": name, "uses": uses, "share": share}));
        let worn = usage.worn.iter();
        let worn = worn.map(|w| json!({"least": w.least, "lines": w.lines, "writes": w.writes}));
        let map = usage.map.iter().map(|(region, part)| {
            json!({
                "region": region,
                "first": part.first.0,
                "lines": part.lines,
                "writes": part.writes,
                "most": part.most,
            })
        });
        json!({
            "banks": usage.banks,
            "buses": usage.buses,
            "read_queues": usage.queues[0],
            "write_queues": usage.queues[1],
            "units": units.collect::<Value>(),
            "worn": worn.collect::<Value>(),
            "map": map.collect::<Value>(),
        })
    }

    /// The costs of each cause that has any.
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
            let mut told = json!({
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
            if a.near_reads + a.near_writes > 0 {
                told["near_reads"] = json!(a.near_reads);
                told["near_writes"] = json!(a.near_writes);
            }
            (cause.name().to_owned(), told)
        });
        told.collect()
    }
}
