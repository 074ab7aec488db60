use sardonyx::config::Machine;
use sardonyx::sim::programs;
use sardonyx::workload::ProgramSpec;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let sets: Vec<(String, String)> = args[6..]
        .iter()
        .map(|s| s.split_once('=').unwrap())
        .map(|(a, b)| (a.into(), b.into()))
        .collect();
    let machine = Machine::load("sca", &sets).unwrap();
    let spec = ProgramSpec {
        name: args[1].clone(),
        item_bytes: 64,
        footprint: args[4].parse::<u64>().unwrap() << 20,
        transactions: args[5].parse().unwrap(),
        seed: 1,
        mutant: None,
    };
    let t = std::time::Instant::now();
    let o = programs::run(
        &machine,
        &args[2],
        &spec,
        args[3].parse().unwrap(),
        0,
        &mut (),
        &mut |_| true,
    )
    .unwrap();
    let ops = o.metrics["memory_operations"].as_f64().unwrap();
    println!(
        "host {:?} ops {ops} requests/s {} -> Mops/s {}",
        t.elapsed(),
        o.metrics["requests_per_second"],
        o.metrics["requests_per_second"].as_f64().unwrap() * ops
            / o.metrics["requests"].as_f64().unwrap()
            / 1e6
    );
    for (k, v) in &o.metrics {
        println!("{k} {v}");
    }
    for (k, v) in &o.causes {
        println!("{k} {v}");
    }
}
