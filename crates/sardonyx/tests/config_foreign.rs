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
            ("mapping", "row:rank:group:bank:channel:column"),
            ("queues.reads", "32"),
            ("queues.writes", "32"),
            ("queues.commands", "16"),
            ("queues.commands_of", "bank"),
            ("queues.passing", "true"),
            ("refresh.closes_singly", "true"),
            ("timing.tRTRS_writes", "false"),
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

/// The cache's file has its own timings and names the memory's, which it lies beside. A row of 32 lines of 64 bytes holds
/// 28 with tags of 8 (LO-Cache.cpp).
#[test]
fn a_cache_of_nvmain_before_the_memory_of_another_file() {
    let desk = Desk::new();
    let cache = NVMAIN
        .replace("CLK 400", "CLK 2000")
        .replace("tRCD 48", "tRCD 14");
    let cache =
        format!("{cache}MEM_CTL DRC\nDRCVariant LO_Cache\nDRC_CHANNELS 1\nMM_CONFIG pcm.config\n");
    let missing = desk.load("cache.config", &cache).unwrap_err();
    assert!(
        missing.contains("pcm.config: there is no such machine or file"),
        "{missing}"
    );
    desk.write("pcm.config", NVMAIN);
    let machine = desk.load("cache.config", &cache).unwrap();
    has(
        &machine,
        &[("timing.tRCD", "48"), ("geometry.channels", "2")],
    );
    for (key, value) in [
        ("form", "cache".to_owned()),
        ("lines", (8 * 65_536 * 28).to_string()),
        ("fills_on_write", "false".to_owned()),
        ("looks_before_write", "false".to_owned()),
        ("medium.timing.tRCD", "14".to_owned()),
        ("medium.timing.clock_ns", "0.5".to_owned()),
        ("medium.geometry.channels", "1".to_owned()),
    ] {
        assert_eq!(is(&machine, &format!("near.{key}")), value, "{key}");
    }
    desk.write("pcm.config", &cache);
    let again = desk.load("cache.config", &cache).unwrap_err();
    assert!(again.contains("pcm.config"), "{again}");
    let other = cache.replace("LO_Cache", "LH_Cache");
    assert!(
        desk.load("lh.config", &other)
            .unwrap_err()
            .contains("give LO_Cache")
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
            ("queues.scheduler", "fr-fcfs"),
            ("timing.tRTRS_writes", "false"),
        ],
    );
}

/// A burst of HBM2 is 32 bytes, so a line lies in two channels, which do the same; pseudo-channels are ranks.
#[test]
fn a_machine_that_ramulator_has_exported() {
    let desk = Desk::new();
    let wanted = [
        ("timing.clock_ns", "1.0"),
        ("timing.tBURST", "2"),
        ("timing.tCCD", "2"),
        ("timing.tCCD_L", "4"),
        ("timing.tRCD", "14"),
        ("timing.tRTP", "5"),
        ("timing.tRTW", "11"), // nCL 14 + nBL 2 + 2 - nCWL 7
        ("timing.tREFI", "0"),
        ("geometry.channels", "1"),
        ("geometry.ranks", "2"),
        ("geometry.banks", "16"),
        ("geometry.columns", "32"),
        ("queues.reads", "24"),
        ("queues.bursts", "1"),
        ("queues.active", "true"),
        ("queues.rank_buses", "true"),
        ("queues.row_bus", "false"), // a controller of DDR
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
    let said = refused(
        "a.ini",
        &DRAMSIM3.replace("trans_queue", "queue_structure = PER_GROUP\ntrans_queue"),
    );
    assert_eq!(
        said,
        "a.ini, line 38, system.queue_structure: DRAMsim3 has no structure of queues PER_GROUP; give PER_BANK or PER_RANK"
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
    assert!((medium.ranks.active.nj() - 43.0 * 1.2 * 8.0).abs() < 1e-3);
    // One current alone says nothing, and no other memory's energies stand for it.
    let medium = desk.load("n.ini", DRAMSIM3).unwrap().engine.medium;
    let energies = [
        medium.energy.read,
        medium.energy.write,
        medium.ranks.standby,
    ];
    assert!(
        energies.iter().all(|energy| energy.nj() == 0.0),
        "{energies:?}"
    );
}

/// Sixteen channels of 32 reads, 32 writes and 16 commands for each of 32 banks; a preset's and a reader's bound follow from the machine.
#[test]
fn the_ingress_follows_from_the_queues_unless_somebody_sets_it() {
    let many = DRAMSIM3.replace("channels = 1", "channels = 16");
    let machine = Desk::new().load("many.ini", &many).unwrap();
    assert_eq!(machine.engine.ingress, 16 * (64 + 32 * 16));
    let load = |name: &str, set: &[(&str, &str)]| Machine::load(name, set).unwrap();
    assert_eq!(load("hbm3", &[]).engine.ingress, 32 * 64);
    assert_eq!(load("esd", &[]).engine.ingress, 64);
    let wide = load("esd", &[("medium.geometry.channels", "8")]);
    assert_eq!(wide.engine.ingress, 512);
    assert!(
        wide.assumed
            .iter()
            .any(|assumed| assumed.parameter == "engine.ingress" && assumed.value == "512")
    );
    let again = Machine::parse(&wide.to_toml(), "again.toml").unwrap();
    assert_eq!(again, wide);
    assert_eq!(load("esd", &[("engine.ingress", "7")]).engine.ingress, 7);
}

/// A rank of HBM has two device widths a column, one of GDDR has BL.
#[test]
fn a_column_of_dramsim3_is_as_wide_as_its_protocol_says() {
    let desk = Desk::new();
    let part = |protocol: &str, columns: &str, width: &str, bl: &str, size: &str| {
        let text = DRAMSIM3
            .replace("protocol = DDR4", &format!("protocol = {protocol}"))
            .replace("columns = 1024", &format!("columns = {columns}"))
            .replace("bus_width = 64", &format!("bus_width = {width}"))
            .replace("BL = 8", &format!("BL = {bl}"))
            .replace("rorabgbachco", "rochrababgco")
            .replace("channel_size = 16384", &format!("channel_size = {size}"));
        desk.load("part.ini", &text).unwrap()
    };
    for (machine, lines) in [
        (part("HBM2", "64", "128", "4", "2048"), "32"),
        (part("GDDR6", "128", "32", "16", "8192"), "128"),
        // Four lines in each of 128 bursts.
        (part("GDDR6", "128", "128", "16", "32768"), "512"),
    ] {
        has(
            &machine,
            &[("geometry.ranks", "1"), ("geometry.columns", lines)],
        );
    }
}

/// As inih's GetReal and GetInteger, which stop at what is no number and take the default of an empty entry.
#[test]
fn numbers_of_dramsim3_are_read_as_its_own_reader_reads_them() {
    let text = DRAMSIM3
        .replace("tFAW = 26", "tFAW = 26 (x8)")
        .replace("tWR = 18", "tWR =");
    let machine = Desk::new().load("a.ini", &text).unwrap();
    has(&machine, &[("timing.tFAW", "26"), ("timing.tWR", "10")]);
}

/// A line takes a whole burst, and has a neighbour in it.
#[test]
fn a_burst_of_dramsim3_may_have_several_lines() {
    let wide = DRAMSIM3.replace("BL = 8", "BL = 16");
    let said = Desk::new().load("a.ini", &wide.replace("rorabgbachco", "rocorabgbach"));
    assert_eq!(
        said.unwrap_err(),
        "a.ini, line 36, system.address_mapping: \"rocorabgbach\" parts the 2 lines of a burst here; give an order \
         that ends with co"
    );
    let machine = Desk::new().load("a.ini", &wide).unwrap();
    has(
        &machine,
        &[
            ("timing.tBURST", "8"),
            ("geometry.columns", "128"),
            ("queues.reads", "32"),
        ],
    );
    let odd = Desk::new().load("a.ini", &wide.replace("bus_width = 64", "bus_width = 24"));
    assert!(odd.unwrap_err().ends_with("a part of it or a multiple"));
}

#[test]
fn nvmain_closes_rows_and_refreshes_unless_its_file_says_otherwise() {
    let desk = Desk::new();
    let page = |more: &str| {
        let machine = desk.load("pcm.config", &format!("{NVMAIN}{more}"));
        is(&machine.unwrap(), "medium.queues.page")
    };
    assert_eq!(page(""), "closed");
    assert_eq!(page("ClosePage 0\n"), "open");
    let said = desk.load(
        "two.config",
        &format!("{NVMAIN}CONFIG_CHANNEL1 fast.config\n"),
    );
    assert_eq!(
        said.unwrap_err(),
        "two.config, line 25, CONFIG_CHANNEL1: the channel's timings are in fast.config, and channels that differ are \
         not read; give the file of one channel"
    );
}

/// NVMain's energies of an access are the file's; without them there are none, not another memory's.
#[test]
fn the_energies_of_nvmains_file_are_its_own() {
    let desk = Desk::new();
    let own = "EnergyModel energy\nErd 20.0\nEopenrd 0.5\nEwr 80.0\nEref 3\nEactstdby 0.1\n";
    let medium = desk.load("ram.config", &format!("{NVMAIN}{own}"));
    let medium = medium.unwrap().engine.medium;
    for (got, wanted) in [
        (medium.energy.read, 20.5),
        (medium.energy.row_hit_read, 0.5),
        (medium.energy.write, 100.0),
        (medium.ranks.row_hit_write, 80.0),
        (medium.ranks.refresh, 24.0), // of 8 banks
        (medium.ranks.standby, 0.0),
        (medium.ranks.active, 40.0), // of 400 cycles
    ] {
        assert!((got.nj() - wanted).abs() < 1e-6, "{got:?} {wanted}");
    }
    let none = desk.load("none.config", NVMAIN).unwrap().engine.medium;
    assert_eq!(none.energy.read.nj(), 0.0);
    let currents =
        "Voltage 1.5\nEIDD0 85\nEIDD2N 37\nEIDD3N 40\nEIDD4R 160\nEIDD4W 165\nEIDD5B 200\n";
    let medium = desk.load("ddr.config", &format!("{NVMAIN}{currents}"));
    let read = medium.unwrap().engine.medium.energy.row_hit_read;
    assert!((read.nj() - 120.0 * 4.0 * 2.5 * 1.5 * 8e-3).abs() < 1e-3);
}

/// All rows of a bank are refreshed in tREFW, RefreshRows at once; timings may have units.
#[test]
fn nvmains_refreshes_and_units() {
    let desk = Desk::new();
    let more = "UseRefresh true\ntREFW 64ms\nRefreshRows 8\ntRFC 267.5ns\nOffChipLatency 4\n";
    let machine = desk.load("units.config", &format!("{NVMAIN}{more}"));
    let wanted = [
        ("timing.tREFI", "3125"), // 25.6 million cycles for 8,192 groups
        ("timing.tRFC", "107"),
        ("timing.off_chip", "4"),
    ];
    has(&machine.unwrap(), &wanted);
    let said = desk.load("x.config", &format!("{NVMAIN}tRFC 5wk\n"));
    assert!(said.is_err());
}

/// What is no memory's own controller is no memory of ours, and a name that the simulator lacks is a slip.
#[test]
fn caches_before_a_memory_and_unknown_names_are_refused() {
    let desk = Desk::new();
    for (name, text, wanted) in [
        (
            "a.config",
            format!("{NVMAIN}MEM_CTL PredictorDRC\n"),
            "MEM_CTL: PredictorDRC is no memory's own controller",
        ),
        (
            "b.config",
            format!("{NVMAIN}Decoder Migrator\n"),
            "Decoder: Migrator moves data between memories",
        ),
        (
            "c.config",
            format!("{NVMAIN}tRDC 9\n"),
            "tRDC: NVMain has no such entry",
        ),
        (
            "d.ini",
            format!("{DRAMSIM3}que_size = 4\n"),
            "system.que_size: DRAMsim3 has no such entry",
        ),
        (
            "e.yaml",
            RAMULATOR.replace("nRCD: 18", "nRDC: 18"),
            "timing.nRDC: Ramulator has no such entry",
        ),
    ] {
        let said = desk.load(name, &text).unwrap_err();
        assert!(said.contains(wanted), "{said}");
    }
}

/// Further channels that are as the first are no entries of their own; others are refused.
#[test]
fn channels_of_an_exported_file_are_alike() {
    let desk = Desk::new();
    let channel = |first: u64| {
        format!(
            r#"{{"dram": {{"impl": "HBM3", "org": {{"dq": 32, "count": [1, 2, 1, 4, 4, 16384, 256]}}, "channel_width": 32,
            "timing": [6400, 4, {first}, 62, 30, 52, 90, 144, 66, 18, 20, 4, 8, 6, 8, 10, 14, 20, 40, 48, 2, 832, 640, 832,
            640, 16, 12480, 780, 312]}}}}"#
        )
    };
    let file = |channels: [String; 2]| {
        format!(
            r#"{{"memory_system": {{"controllers": [{}]}}}}"#,
            channels.join(",")
        )
    };
    let machine = desk
        .load("hbm3.json", &file([channel(40), channel(40)]))
        .unwrap();
    let wanted = [
        ("geometry.channels", "1"),
        ("geometry.ranks", "2"),
        ("geometry.groups", "4"),
        ("geometry.columns", "32"),
        ("timing.tBURST", "4"),
        ("timing.tCL", "40"),
        ("timing.tRTW", "40"),
        ("queues.reads", "32"),
    ];
    has(&machine, &wanted);
    let said = desk
        .load("two.json", &file([channel(40), channel(44)]))
        .unwrap_err();
    assert!(
        said.contains("44 here and 40 in the first channel"),
        "{said}"
    );
}

/// What Ramulator 2.1 exports for its presets GDDR7_28000_PAM3 and LPDDR6_10667_BL24, whose timings have other names.
#[test]
fn gddr7_and_lpddr6_as_ramulator_exports_them() {
    let desk = Desk::new();
    let file =
        |dram: &str| format!(r#"{{"memory_system": {{"controllers": [{{"dram": {dram}}}]}}}}"#);
    let gddr7 = r#"{"impl": "GDDR7", "org": {"dq": 8, "count": [1, 16, 16384, 2048]}, "timing": [28021, 2, 24, 6, 0, 30, 19, 30, 60, 90, 4, 21, 2, 4, 2, 30, 2, 4, 9, 11, 12, 3327, 207, 315, 105, 28, 315, 105, 2, 18, 8, 26, 10, 6, 2, 2, 18, 571], "channel_width": 8}"#;
    has(
        &desk.load("gddr7.json", &file(gddr7)).unwrap(),
        &[
            ("timing.clock_ns", "0.571"),
            ("timing.tBURST", "4"), // two bursts of 32 bytes
            ("timing.tCL", "25"),   // 1 + nRL + nDQERL
            ("timing.tCWD", "6"),
            ("timing.tFAW", "0"),
            ("timing.tRTW", "12"),
            ("queues.bursts", "2"),
            ("timing.tRFC", "315"),
            ("geometry.banks", "16"),
            ("geometry.groups", "16"), // each bank, for nCCDSB and nWTRSB
            ("timing.tWTR_L", "11"),
            ("geometry.columns", "32"),
        ],
    );
    let lpddr6 = r#"{"impl": "LPDDR6", "org": {"dq": 12, "count": [1, 1, 4, 4, 65536, 1024]}, "timing": [10667, 6, 12, 18, 24, 56, 26, 59, 48, 22, 107, 115, 54, 169, 32, 14, 26, 4, 6, 10, 22, 6, 10, 22, 10, 17, 32, 41, 47, 53, 59, 5, 0, 27, 0, 40, 1014, 10416, 3, 2, 8, 2, 375], "channel_width": 12, "data_payload_bytes": 32}"#;
    has(
        &desk.load("lpddr6.json", &file(lpddr6)).unwrap(),
        &[
            ("timing.clock_ns", "0.375"),
            ("timing.tCL", "56"),
            ("timing.tCWD", "26"),
            ("timing.tRCD", "48"),
            ("timing.tRCDWR", "22"),
            ("timing.tWR", "38"), // from the end of a burst with gaps, 6 later
            ("timing.tRC", "169"),
            ("timing.tBURST", "12"), // two bursts of 24 beats, 32 bytes each
            ("timing.tCCD_L", "20"),
            ("geometry.columns", "32"), // 1024 columns of 2 bytes
        ],
    );
}
