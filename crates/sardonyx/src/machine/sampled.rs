//! A long run as a sample: windows of it in time, spread evenly, and what lies between them without a clock, so
//! that tables, caches and contents are where the whole run would have them (SMARTS, Wunderlich et al., ISCA 2003).
//!
//! The part that counts is cut into as many equal parts as there are windows, and each window lies somewhere in
//! its own, drawn from a seed, so that a trace that repeats itself is not met at the same place each time. Before a
//! window counts, requests fill queues, banks and buffers in time; after it some more go on, so that its last ones
//! do not find an emptying memory.

use std::ops::Range;
use std::time::Instant;

use sardonyx_base::random::SplitMix64;

use super::outcome::{self, HostSpeed, time};
use super::system::Until;
use super::{Outcome, RunError, System, TraceUse, Warmup};
use crate::figures::{Amount, Figure, Figures};
use crate::latency::Latencies;
use crate::stats::Ledger;

/// The least number of windows. With fewer an interval says little.
pub const LEAST_WINDOWS: u64 = 10;
/// Requests that continue after a window: more than the controller's queues hold.
pub const TAIL: u64 = 256;
/// Skipped accesses of a single agent between two looks at the progress.
const STRETCH: u64 = 4096;

/// The part of a run that is timed.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// The number of windows.
    pub windows: u64,
    /// Requests of each window that count.
    pub requests: u64,
    /// Requests before these that are timed and do not count.
    pub ramp: u64,
    /// The seed for the position of each window in its part.
    pub seed: u64,
}

/// The estimate of the whole run that a sample gives.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The mean over all windows; percentiles and distributions are those of all windows' requests.
    pub outcome: Outcome,
    /// The half-widths of the means' 95 % intervals.
    pub half_widths: Vec<(&'static Figure, f64)>,
    /// The number of requests that were timed.
    pub timed: u64,
    /// The number of requests of the whole run, warm-up included.
    pub requests: u64,
}

impl System<'_> {
    /// Plays `counted` requests of all sources as a sample. Those before them go by without a clock.
    ///
    /// # Errors
    /// As [`System::run`]; there are too few requests for so many windows.
    ///
    /// # Panics
    /// If an agent cannot do without a clock.
    pub fn sample(
        mut self,
        sampling: &Sampling,
        counted: Range<u64>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Sample, RunError> {
        let started = Instant::now();
        let starts = sampling.starts(&counted).map_err(|problem| TraceUse {
            trace: self.agents[0].name().to_owned(),
            problem,
            remedy: "ask for fewer or smaller windows, or leave --sample out",
        })?;
        let mut windows = Vec::new();
        let mut done = self.pass(counted.start, progress)?;
        let mut timed = 0;
        let before = self.gone();
        for start in starts {
            done += self.pass(start - done, &mut |passed| progress(done + passed))?;
            let base = self.port.admitted;
            windows.push(self.window(sampling, &mut |_| progress(done))?);
            done += self.port.admitted - base;
            timed += self.port.admitted - base;
        }
        // What comes after the last window is not asked what it does, but how long its gaps are.
        done += self.pass(counted.end - done, &mut |passed| progress(done + passed))?;
        let known = before.zip(self.gone()).map(|(before, after)| {
            let all = (counted.end - counted.start) as f64;
            let (core, cores) = (&self.machine.core, self.agents.len() as f64);
            Known {
                instructions: (after - before) as f64 * sampling.requests as f64 / all,
                speed: cores * core.width as f64 / core.clock.ns(),
                cycles: cores / core.clock.ns(),
            }
        });
        let mut sample = estimate(windows, known);
        outcome::verified(&mut sample.outcome.figures, &self.port.memory);
        sample.outcome.host_speed = HostSpeed(done as f64 / started.elapsed().as_secs_f64());
        (sample.timed, sample.requests) = (timed, counted.end);
        self.drain(&mut sample.outcome)?;
        Ok(sample)
    }

    /// Instructions of all cores before their next accesses; `None` if a trace counts cycles.
    fn gone(&mut self) -> Option<u64> {
        let mut agents = self.agents.iter_mut();
        agents.try_fold(0, |sum, agent| Some(sum + agent.passing()?.gone()?))
    }

    /// Skips so many requests without a clock, cores in turn, and returns their number. Wear is not counted, because it
    /// is forgotten when a window begins to count.
    fn pass(&mut self, most: u64, progress: &mut dyn FnMut(u64) -> bool) -> Result<u64, RunError> {
        self.port.memory.spare(true);
        let passed = self.pass_over(most, progress);
        self.port.memory.spare(false);
        passed
    }

    fn pass_over(
        &mut self,
        most: u64,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<u64, RunError> {
        let stretch = if self.agents.len() == 1 { STRETCH } else { 1 };
        let (mut passed, mut told) = (0, 0);
        while passed < most {
            let before = passed;
            for number in 0..self.agents.len() {
                let agent = self.agents[number].passing();
                let agent = agent.expect("an agent that can do without a clock");
                passed += agent.pass(&mut self.port, stretch.min(most - passed))?;
                self.verified(number)?;
            }
            if passed == before {
                break;
            }
            if passed >= told + STRETCH {
                told = passed;
                if !progress(passed) {
                    return Err(RunError::Cancelled);
                }
            }
        }
        Ok(passed)
    }

    fn window(
        &mut self,
        sampling: &Sampling,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<SampledWindow, RunError> {
        let from = self.port.admitted + sampling.ramp;
        let counted = from + sampling.requests;
        self.warmup = Warmup::Requests(from);
        self.until = Some(Until {
            counted,
            played: counted + TAIL,
        });
        self.before = None;
        self.port.counted = false;
        self.port.reads.reset();
        self.port.writes.reset();
        let now = self.port.memory.now();
        self.port.memory.resume();
        for (agent, turn) in self.agents.iter_mut().zip(&mut self.turns) {
            let passing = agent.passing().expect("it has just passed");
            passing.resume(now);
            *turn = agent.next_turn();
        }
        self.play(progress)?;
        let mut outcome = self.counted.take().expect("its requests are there");
        outcome::complete(&mut outcome, &self.port);
        Ok(SampledWindow {
            outcome,
            reads: self.port.reads.clone(),
            writes: self.port.writes.clone(),
        })
    }
}

impl Sampling {
    /// The requests with which the windows' ramps begin, in order.
    ///
    /// # Errors
    /// They do not fit.
    pub fn starts(&self, counted: &Range<u64>) -> Result<Vec<u64>, String> {
        let own = self.ramp + self.requests + TAIL;
        let all = counted.end.saturating_sub(counted.start);
        let part = all / self.windows.max(1);
        if part < own {
            return Err(format!(
                "{} windows of {own} requests ({} before and {TAIL} after those that count) are more than its {all}",
                self.windows, self.ramp
            ));
        }
        let mut draw = SplitMix64(self.seed);
        let starts =
            (0..self.windows).map(|k| counted.start + k * part + draw.below(part - own + 1));
        Ok(starts.collect())
    }
}

struct SampledWindow {
    outcome: Outcome,
    reads: Latencies,
    writes: Latencies,
}

/// Facts about a window's mean that need no clock.
///
/// Rare long gaps between accesses can be half of a run's time, and windows miss them or have too many. The number of
/// instructions is known, and so is their time at full speed; windows estimate the rest (a difference estimator;
/// Cochran, Sampling Techniques, 7.2).
struct Known {
    /// Instructions of a window, the mean of the whole run.
    instructions: f64,
    /// Instructions of all cores in a nanosecond at full speed.
    speed: f64,
    cycles: f64,
}

impl Known {
    fn pace(&self, windows: &[&Figures], sample: &mut Sample) {
        let figures = &mut sample.outcome.figures;
        let took = |window: &&Figures| {
            let instructions = window.of(&time::INSTRUCTIONS).number()?;
            Some((
                window.of(&time::SIMULATED).number()? - instructions / self.speed,
                1.0,
            ))
        };
        let on_top: Vec<(f64, f64)> = windows.iter().filter_map(took).collect();
        let (Some((on_top, Some(half))), Some(timed)) =
            (mean(&on_top), figures.of(&time::SIMULATED).number())
        else {
            return;
        };
        let whole = on_top + self.instructions / self.speed;
        if whole <= 0.0 {
            return;
        }
        let (longer, unsure) = (whole / timed, half / whole);
        let all: Vec<_> = figures.iter().collect();
        for (figure, value) in all {
            let power = outcome::power_of_time(figure);
            let Some(value) = value.number().filter(|_| power != 0) else {
                continue;
            };
            let value_then = value * longer.powi(power);
            figures.set(figure, value_then);
            for (_, half) in widths_of(&mut sample.half_widths, figure) {
                *half = value_then * (*half / value).hypot(unsure);
            }
        }
        for (figure, value, half) in [
            (&time::SIMULATED, whole, Some(half)),
            (&time::INSTRUCTIONS, self.instructions, None),
        ] {
            figures.set(figure, value);
            sample
                .half_widths
                .retain(|(known, _)| known.name != figure.name);
            sample.half_widths.extend(half.map(|half| (figure, half)));
        }
        if figures.of(&time::IPC).number().is_some() {
            let ipc = self.instructions / (whole * self.cycles);
            figures.set(&time::IPC, ipc);
            for (_, half) in widths_of(&mut sample.half_widths, &time::IPC) {
                *half = ipc * unsure;
            }
        }
    }
}

fn widths_of<'h>(
    half_widths: &'h mut [(&'static Figure, f64)],
    figure: &'static Figure,
) -> impl Iterator<Item = &'h mut (&'static Figure, f64)> {
    let all = half_widths.iter_mut();
    all.filter(|(known, _)| known.name == figure.name)
}

fn estimate(windows: Vec<SampledWindow>, known: Option<Known>) -> Sample {
    let all: Vec<&Figures> = windows
        .iter()
        .map(|window| &window.outcome.figures)
        .collect();
    let (mut figures, mut half_widths) = (Figures::default(), Vec::new());
    for (figure, _) in all[0].iter() {
        if outcome::is_of_a_whole_run(figure) {
            continue;
        }
        let weigh = outcome::weight(figure);
        let known = all.iter().filter_map(|window| {
            let weight = weigh.map_or(Some(1.0), |by| window.of(by).number())?;
            Some((window.of(figure).number()?, weight))
        });
        let known: Vec<(f64, f64)> = known.filter(|(_, weight)| *weight > 0.0).collect();
        match mean(&known) {
            None => figures.put(figure, Amount::Absent),
            Some((mean, half_width)) => {
                figures.put(figure, mean);
                half_widths.extend(half_width.map(|half_width| (figure, half_width)));
            }
        }
    }
    let (mut reads, mut writes, mut ledger) =
        (Latencies::new(), Latencies::new(), Ledger::default());
    for window in &windows {
        reads.add(&window.reads);
        writes.add(&window.writes);
        ledger.add(&window.outcome.ledger);
    }
    outcome::pooled(&mut figures, &reads, &writes);
    half_widths.retain(|(figure, _)| !outcome::is_pooled(figure));
    let first = &windows[0].outcome;
    let mut sample = Sample {
        outcome: Outcome {
            figures,
            ledger: ledger.divided(windows.len() as u64),
            write_latency_cdf: outcome::cdf(&writes),
            read_latency_cdf: outcome::cdf(&reads),
            over_time: None,
            ..first.clone()
        },
        half_widths,
        timed: 0,
        requests: 0,
    };
    if let Some(known) = known {
        known.pace(&all, &mut sample);
    }
    sample
}

/// The mean of values by their weights, and half of its 95 % interval: that of a ratio of two sums, to first order.
/// `None` without any value; no interval with fewer than [`LEAST_WINDOWS`].
fn mean(values: &[(f64, f64)]) -> Option<(f64, Option<f64>)> {
    let weights: f64 = values.iter().map(|(_, weight)| weight).sum();
    if values.is_empty() {
        return None;
    }
    let mean = values
        .iter()
        .map(|(value, weight)| value * weight)
        .sum::<f64>()
        / weights;
    let count = values.len() as f64;
    let strayed = |(value, weight): &(f64, f64)| (weight * (value - mean)).powi(2);
    let spread = values.iter().map(strayed).sum::<f64>() * count / (count - 1.0);
    let sure = values.len() as u64 >= LEAST_WINDOWS;
    Some((
        mean,
        sure.then(|| student(count - 1.0) * spread.sqrt() / weights),
    ))
}

/// The limit that 95 of 100 values of Student's t with so many degrees of freedom (at least 9) do not exceed on either
/// side, to three digits: the expansion about the normal's (Abramowitz and Stegun, 26.7.5).
fn student(freedom: f64) -> f64 {
    let z = 1.959_964_f64;
    let terms = [
        z,
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    let sum = |sum: f64, term: &f64| sum / freedom + term;
    terms.iter().rev().fold(0.0, sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Machine;
    use crate::line::Logical;
    use crate::machine::recordings::{self, Options};
    use crate::memory::Memory;
    use crate::trace::{Source, Spec, Synth};

    #[test]
    fn student_s_t_is_that_of_the_tables() {
        for (freedom, wanted) in [(9.0, 2.262), (19.0, 2.093), (29.0, 2.045), (99.0, 1.984)] {
            assert!((student(freedom) - wanted).abs() < 0.001, "{freedom}");
        }
    }

    #[test]
    fn a_mean_by_weights_and_its_interval_are_those_of_a_calculation_by_hand() {
        // Ten values, five of 1 and five of 3, alike in weight: mean 2, standard deviation 1.0541.
        let values: Vec<_> = (0..10).map(|i| (f64::from(1 + 2 * (i % 2)), 1.0)).collect();
        let (middle, half) = mean(&values).unwrap();
        assert!((middle - 2.0).abs() < 1e-12);
        assert!((half.unwrap() - 2.262 * 1.0541 / 10f64.sqrt()).abs() < 0.001);
        // Values of weight 3 count three times.
        let (middle, none) = mean(&[(1.0, 1.0), (5.0, 3.0)]).unwrap();
        assert_eq!((middle, none), (4.0, None));
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn what_goes_by_without_a_clock_leaves_the_same_bytes() {
        const LINES: u64 = 1 << 10;
        let machine = Machine::load("esd", &[] as &[(&str, &str)]).unwrap();
        for design in ["no-encryption", "baseline", "esd", "dewrite-sound"] {
            let system = || {
                let spec = Spec {
                    records: 20_000,
                    footprint_lines: LINES,
                    ..Spec::default()
                };
                let source = Source::from(Synth::new(spec, 7).unwrap());
                recordings::system(&machine, design, vec![source], Options::default()).unwrap()
            };
            let mut timed = system();
            timed.run(&mut |_| true).unwrap();
            let mut passed = system();
            assert_eq!(passed.pass(u64::MAX, &mut |_| true).unwrap(), 20_000);
            let (mut timed, mut passed) = (timed.into_memory(), passed.into_memory());
            let mut written = 0;
            for line in (0..4 * LINES).map(Logical) {
                let line =
                    timed.read_at_once(line).inspect(|_| written += 1) == passed.read_at_once(line);
                assert!(line, "{design}");
            }
            assert!(written > LINES / 2, "{design}: {written} lines");
            // Everything else that lies in the medium as well: counters, mappings, fingerprints.
            timed.settle();
            passed.settle();
            let of = |memory: &Memory| memory.image().written_lines().collect::<Vec<_>>();
            assert!(
                of(&timed) == of(&passed),
                "{design}: not all lines of the medium"
            );
        }
    }

    #[test]
    fn windows_lie_in_parts_of_their_own() {
        let sampling = Sampling {
            windows: 20,
            requests: 100,
            ramp: 50,
            seed: 3,
        };
        let starts = sampling.starts(&(1000..101_000)).unwrap();
        for (k, start) in starts.iter().enumerate() {
            let part = 1000 + 5000 * k as u64;
            assert!((part..=part + 5000 - 150 - TAIL).contains(start));
        }
        assert!(sampling.starts(&(0..8000)).is_err());
    }
}
