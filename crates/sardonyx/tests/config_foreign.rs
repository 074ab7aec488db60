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
