//! Other simulators' files read as machines: what they say, what is left out by name, and what is refused.

use std::path::PathBuf;

use sardonyx::config::Machine;
use tempfile::TempDir;

const DRAMSIM3: &str = "[dram_structure]
protocol = DDR4
bankgroups = 4
banks_per_group = 4
rows = 65536
columns = 1024
device_width = 8
BL = 8
[timing]
tCK = 0.83
AL = 0
CL = 17
CWL = 12
tRCD = 17
tRP = 17
tRAS = 39
tRFC = 420
tREFI = 9360
tRRD_S = 4
tRRD_L = 6
tWTR_S = 3
tWTR_L = 9
tFAW = 26
tWR = 18
tRTP = 9
tCCD_S = 4
tCCD_L = 6
tXP = 8 ; power-down
[power]
VDD = 1.2
IDD0 = 43
[system]
channel_size = 16384
channels = 1
bus_width = 64
address_mapping = rorabgbachco
row_buf_policy = OPEN_PAGE
trans_queue_size = 32
";

const NVMAIN: &str = "; a PCM
CLK 400
CPUFreq 2000
BusWidth 64
BANKS 8
RANKS 1
CHANNELS 2
ROWS 65536
COLS 32
tBURST 4
tCAS 1
tCWD 4
tRCD 48
tRP 1
tRAS 0
tWP 60
tRRDR 2
tRRDW 4
AddressMappingScheme R:RK:BK:CH:C
ReadQueueSize 16
WriteQueueSize 24
HighWaterMark 20
LowWaterMark 8
Erd 0.08
";

const RAMULATOR: &str = "Frontend:
  impl: SimpleO3
MemorySystem:
  impl: GenericDRAM
  clock_ratio: 3
  DRAM:
    impl: DDR4
    org:
      preset: DDR4_8Gb_x8
      channel: 2
      rank: 2
    timing:
      preset: DDR4_2400R
      nRCD: 18
      tWR: 14.5
  Controller:
    impl: Generic
    wr_low_watermark: 0.25
    Scheduler:
      impl: FRFCFS
    RefreshManager:
      impl: AllBank
    RowPolicy:
      impl: ClosedRowPolicy
      cap: 4
    plugins:
  AddrMapper:
    impl: RoBaRaCoCh
";

/// As `python -m ramulator export` writes it: lists in the order of the standard, two controllers.
const EXPORTED: &str = "memory_system:
  impl: GenericDRAM
  controllers:
    - impl: GenericDDR
      read_buffer_size: 24
      dram:
        impl: HBM2
        org:
          dq: 64
          count: [1, 2, 4, 4, 16384, 128]
        timing: [2000, 2, 14, 14, 10, 14, 33, 47, 16, 5, 7, 2, 4, 4, 6, 6, 8, 16, 260, 160, 8, 3900, 122, 1000]
        channel_width: 64
        timing_constraints:
          - [0, [1], [1], 2]
      addr_mapper:
        impl: MOP4CLXOR
      refresh_manager:
        impl: NoRefresh
      row_policy:
        impl: Open
    - impl: GenericDDR
      dram:
        impl: HBM2
";

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn load(&self, name: &str, text: &str) -> Result<Machine, String> {
        let path = self.write(name, text);
        let folder = format!("{}/", self.0.path().display());
        let machine = Machine::load::<&str, &str>(path.to_str().unwrap(), &[]);
        machine.map_err(|error| error.to_string().replace(&folder, ""))
    }
}

fn is(machine: &Machine, key: &str) -> String {
    machine.parameters()[key].to_string().replace('"', "")
}

fn has(machine: &Machine, wanted: &[(&str, &str)]) {
    for (key, value) in wanted {
        assert_eq!(is(machine, &format!("medium.{key}")), *value, "{key}");
    }
}

#[test]
fn a_machine_of_dramsim3() {
    let machine = Desk::new().load("ddr4.ini", DRAMSIM3).unwrap();
    assert_eq!(machine.name, "ddr4");
    has(
        &machine,
        &[
            ("timing.clock_ns", "0.83"),
            ("timing.tCL", "17"),
            ("timing.tCCD", "4"),
            ("timing.tCCD_L", "6"),
            ("timing.tRRD_L", "6"),
            ("timing.tWTR_L", "9"),
            ("timing.tREFI", "9360"),
            ("geometry.ranks", "2"),
            ("geometry.banks", "16"),
            ("geometry.groups", "4"),
            ("geometry.columns", "128"),
            ("mapping", "row:rank:bank:channel:column"),
            ("queues.writes", "64"),
        ],
    );
}

#[test]
fn a_machine_of_nvmain() {
    let machine = Desk::new().load("pcm.config", NVMAIN).unwrap();
    has(
        &machine,
        &[
            ("timing.clock_ns", "2.5"),
            ("timing.tRCD", "48"),
            ("timing.tWP", "60"),
            ("timing.tRRD", "4"),
            ("timing.tFAW", "20"),
            ("geometry.channels", "2"),
            ("geometry.columns", "32"),
            ("queues.high_watermark", "20"),
            ("queues.low_watermark", "8"),
        ],
    );
}

/// The figures are JEDEC's for such a part: tRFC 360 ns and tREFI 7.8 us at 833 ps, tFAW 26 cycles. 14.5 ns of tWR are
/// 18 cycles, rounded as the standard says.
#[test]
fn a_machine_of_ramulator_with_presets() {
    let machine = Desk::new().load("ddr4.yaml", RAMULATOR).unwrap();
    has(
        &machine,
        &[
            ("timing.clock_ns", "0.833"),
            ("timing.tCL", "16"),
            ("timing.tRCD", "18"),
            ("timing.tWR", "18"),
            ("timing.tRRD", "4"),
            ("timing.tRRD_L", "6"),
            ("timing.tCCD_L", "6"),
            ("timing.tWTR_L", "9"),
            ("timing.tFAW", "26"),
            ("timing.tRTP", "9"),
            ("timing.tRFC", "433"),
            ("timing.tREFI", "9364"),
            ("geometry.channels", "2"),
            ("geometry.ranks", "2"),
            ("geometry.banks", "16"),
            ("geometry.groups", "4"),
            ("geometry.rows", "65536"),
            ("geometry.columns", "128"),
            ("mapping", "row:bank:rank:column:channel"),
            ("queues.page", "closed"),
            ("queues.reads", "32"),
            ("queues.high_watermark", "26"),
            ("queues.low_watermark", "7"),
        ],
    );
}

/// A burst of HBM2 is 32 bytes, so a line is two of them; pseudo-channels are channels.
#[test]
fn a_machine_that_ramulator_has_exported() {
    let desk = Desk::new();
    let wanted = [
        ("timing.clock_ns", "1.0"),
        ("timing.tBURST", "4"),
        ("timing.tCCD", "4"),
        ("timing.tCCD_L", "8"),
        ("timing.tRCD", "14"),
        ("timing.tRTP", "5"),
        ("timing.tREFI", "0"),
        ("geometry.channels", "4"),
        ("geometry.banks", "16"),
        ("geometry.columns", "16"),
        ("queues.reads", "24"),
        ("queues.page", "open"),
        ("mapping", "row:bank:rank:column:channel"),
    ];
    has(&desk.load("hbm.yml", EXPORTED).unwrap(), &wanted);
    let json = r#"{"memory_system": {"controllers": [{"dram": {"impl": "DDR3", "org": {"dq": 8,
        "count": [1, 2, 8, 65536, 1024]}, "timing": [1600, 4, 11, 11, 11, 28, 39, 12, 6, 8, 4, 5, 6, 24, 208, 6240,
        2, 1250], "channel_width": 64}}]}}"#;
    let wanted = [
        ("timing.tRRD", "5"),
        ("geometry.ranks", "2"),
        ("timing.tRFC", "208"),
    ];
    has(&desk.load("ddr3.json", json).unwrap(), &wanted);
}

#[test]
fn a_machine_of_the_first_ramulator() {
    let text = "# DDR3\n standard = DDR3\n channels = 1\n ranks = 1\n speed = DDR3_1600K\n org = DDR3_2Gb_x8\n";
    let machine = Desk::new().load("DDR3-config.cfg", text).unwrap();
    let wanted = [
        ("timing.tCL", "11"),
        ("timing.tRRD", "5"),
        ("timing.tRFC", "128"),
        ("geometry.banks", "8"),
        ("geometry.rows", "32768"),
    ];
    has(&machine, &wanted);
}

#[test]
fn what_ramulator_has_and_nobody_here_is_refused_with_its_line() {
    let desk = Desk::new();
    for (from, to, wanted) in [
        (
            "impl: DDR4",
            "impl: HMC",
            "r.yaml, line 7: \"HMC\" is a standard that is not read; known are DDR3, DDR4",
        ),
        (
            "8Gb_x8",
            "8Gb_x7",
            "r.yaml, line 9, org.preset: no preset \"DDR4_8Gb_x7\" is known; known are DDR4_2Gb_x4",
        ),
        (
            "2400R",
            "9999",
            "r.yaml, line 13, timing.preset: no preset \"DDR4_9999\" is known; known are DDR4_1600J",
        ),
        (
            "nRCD: 18",
            "nRCD: many",
            "r.yaml, line 14, timing.nRCD: \"many\" is not a number",
        ),
        (
            "rank: 2",
            "rank: 0",
            "r.yaml, line 11, org.rank: 0 of them are no memory",
        ),
        ("      cap: 4", "   x: [", "r.yaml, line 2"),
    ] {
        let said = desk
            .load("r.yaml", &RAMULATOR.replace(from, to))
            .unwrap_err();
        assert!(said.starts_with(wanted), "{said}");
    }
    let said = desk
        .load("r.yaml", "Frontend:\n  impl: SimpleO3\n")
        .unwrap_err();
    assert!(
        said.starts_with("r.yaml: says nothing of a memory"),
        "{said}"
    );
    let said = desk.load("r.cfg", "speed = DDR3_1600K\n").unwrap_err();
    assert!(
        said.starts_with("r.cfg: says nothing of a memory"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_is_refused_with_its_line() {
    let desk = Desk::new();
    let refused = |name: &str, text: &str| desk.load(name, text).unwrap_err();
    let said = refused("a.ini", &DRAMSIM3.replace("CL = 17", "CL = many"));
    assert_eq!(
        said,
        "a.ini, line 12, timing.CL: \"many\" is not a number from 0 to 1e12; give a number"
    );
    let said = refused(
        "a.ini",
        &DRAMSIM3.replace("protocol = DDR4", "protocol = HMC"),
    );
    assert!(
        said.starts_with("a.ini, line 2, dram_structure.protocol: a Hybrid Memory Cube"),
        "{said}"
    );
    let said = refused("a.ini", "[sardonyx]\nmachine = esd\n");
    assert!(
        said.starts_with("a.ini: says nothing of a memory"),
        "{said}"
    );
    let said = refused("a.config", &NVMAIN.replace("BusWidth 64", "BusWidth 8"));
    assert!(
        said.starts_with("a.config, line 4, BusWidth: a burst moves 8 bytes"),
        "{said}"
    );
    let said = refused("a.config", &NVMAIN.replace("R:RK:BK:CH:C", "R:RK:BK"));
    assert!(
        said.contains("AddressMappingScheme: \"R:RK:BK\" is not the fields"),
        "{said}"
    );
}

/// By hand: a milliampere at a volt for a nanosecond is a thousandth of a nanojoule, and eight parts make a rank.
#[test]
fn currents_become_energies_where_all_are_there() {
    let desk = Desk::new();
    let all = "IDD0 = 48\nIDD2N = 34\nIDD3N = 43\nIDD4R = 135\nIDD4W = 123\nIDD5AB = 250";
    let machine = desk.load("m.ini", &DRAMSIM3.replace("IDD0 = 43", all));
    let machine = machine.unwrap();
    let medium = &machine.engine.medium;
    let nj = |current: f64, cycles: f64| current * cycles * 0.83 * 1.2 * 8e-3;
    let opened = nj(48.0 * 56.0 - 43.0 * 39.0 - 34.0 * 17.0, 1.0);
    for (got, wanted) in [
        (medium.energy.row_hit_read, nj(92.0, 4.0)),
        (medium.energy.read, opened + nj(92.0, 4.0)),
        (medium.ranks.row_hit_write, nj(80.0, 4.0)),
        (medium.energy.write, opened + nj(80.0, 4.0)),
        (medium.ranks.refresh, nj(207.0, 420.0)),
        (medium.ranks.standby, 34.0 * 1.2 * 8.0),
    ] {
        assert!((got.nj() - wanted).abs() < 1e-3, "{got:?} {wanted}");
    }
    // One current alone says nothing.
    let other = desk.load("n.ini", DRAMSIM3).unwrap();
    let preset = Machine::load("ddr4-2400", &[] as &[(&str, &str)]).unwrap();
    assert_eq!(other.engine.medium.energy, preset.engine.medium.energy);
}
