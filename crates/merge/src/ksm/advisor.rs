//! The kernel's scan-time advisor (Linux 6.7 and later): after each pass it sets `pages_to_scan` so that
//! a pass takes the time asked for, within a share of the processor. Integer arithmetic as the kernel's.

/// The least share of a processor that the advisor uses, in percent.
const MIN_CPU: u64 = 10;
/// The weight of the newest pass in the average, in percent (`EWMA_WEIGHT` in mm/ksm.c).
const NEWEST: u64 = 30;

#[derive(Clone, Copy, Debug, Default)]
pub struct ScanTime {
    scan_s: u64,
    change: u64,
    cpu_ns: u64,
}

impl ScanTime {
    /// The `pages_to_scan` of the next pass. `advice` has the target in seconds, the most percent of a core, and the
    /// least and the most pages.
    pub fn advise(
        &mut self,
        pages_to_scan: u64,
        advice: [u64; 4],
        pass_ms: u64,
        cpu_ns: u64,
    ) -> u64 {
        let [target_s, max_cpu, _, max_pages] = advice;
        let scan_s = (pass_ms / 1000).max(1);
        let cpu_ms = (cpu_ns - self.cpu_ns) / 1_000_000;
        let percent = (cpu_ms * 100 / (scan_s * 1000)).max(1);
        let before_s = if self.scan_s == 0 {
            scan_s
        } else {
            self.scan_s
        };
        let factor = (target_s * 100 / scan_s).max(1);
        let change = (scan_s * 100 / before_s).max(1);
        let change = ((100 - NEWEST) * self.change + NEWEST * change) / 100;
        let per_percent = (pages_to_scan / percent).max(1);
        let wanted = pages_to_scan * 100 / factor * change / 100;
        let pages = wanted
            .min(per_percent * max_cpu)
            .max(per_percent * MIN_CPU)
            .min(max_pages);
        *self = ScanTime {
            scan_s,
            change,
            cpu_ns,
        };
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_takes_too_long_gets_more_pages_a_batch_within_the_processor_share() {
        let mut advisor = ScanTime::default();
        // A pass takes 400 s where 200 s are wanted, at 2 % of a processor: 500 pages, and 30 % of twice as many.
        let pages = advisor.advise(500, [200, 70, 500, 30_000], 400_000, 8_000_000_000);
        assert_eq!(pages, 2_500); // 10 % of the processor is the least: 250 pages a percent
        let pages = advisor.advise(30_000, [200, 70, 500, 30_000], 400_000, 360_000_000_000);
        assert_eq!(pages, 23_800); // 88 % before, 70 % the most: 340 pages a percent
    }
}
