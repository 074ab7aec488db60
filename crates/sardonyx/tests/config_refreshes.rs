//! Refreshes as other simulators' files ask for them: of ranks in turn or together, of some banks, or none.

use sardonyx::config::Machine;

/// The medium's values of a file of that ending, or why it is refused.
fn load(ending: &str, text: &str) -> Result<Machine, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("m.{ending}"));
    std::fs::write(&path, text).unwrap();
    let machine = Machine::load::<&str, &str>(path.to_str().unwrap(), &[]);
    machine.map_err(|error| error.to_string())
}

fn has(machine: &Machine, wanted: [(&str, &str); 5]) {
    for (key, value) in wanted {
        let found = machine.parameters()[&*format!("medium.{key}")].to_string();
        assert_eq!(found.replace('"', ""), value, "{key}");
    }
}

const DRAMSIM3: &str = "[dram_structure]\nprotocol = LPDDR4\nbankgroups = 1\nbanks_per_group = 8
rows = 4096\ncolumns = 1024\ndevice_width = 16\nBL = 16\n[timing]\ntCK = 1\ntRFC = 200\ntREFI = 3900\ntRFCb = 90
tREFIb = 400\n[power]\nVDD = 1.1\nIDD0 = 60\nIDD2N = 20\nIDD3N = 30\nIDD4R = 200\nIDD4W = 210\nIDD5AB = 100
IDD5PB = 50\n[system]\nchannel_size = 256\nbus_width = 32\nrefresh_policy = POLICY\n";

#[test]
fn dramsim3s_policies() {
    let of = |policy: &str| load("ini", &DRAMSIM3.replace("POLICY", policy));
    let ranks = |turns| {
        [
            ("refresh.ranks", turns),
            ("timing.tRFCsb", "0"),
            ("timing.tRFC", "200"),
            ("timing.tREFI", "3900"),
            ("geometry.ranks", "2"),
        ]
    };
    has(&of("RANK_LEVEL_STAGGERED").unwrap(), ranks("in-turn"));
    has(&of("RANK_LEVEL_SIMULTANEOUS").unwrap(), ranks("together"));
    let banks = of("BANK_LEVEL_STAGGERED").unwrap();
    has(
        &banks,
        [
            ("refresh.ranks", "in-turn"),
            ("refresh.banks", "1"),
            ("timing.tRFCsb", "90"),
            ("timing.tREFI", "6400"), // each 400 cycles one of sixteen banks
            ("geometry.banks", "8"),
        ],
    );
    // Two parts: 20 mA at 1.1 V for 90 ns in each of a rank's eight banks.
    let refresh = banks.engine.medium.ranks.refresh.nj();
    assert!(
        (refresh - 20.0 * 1.1 * 90.0 * 8.0 * 2e-3).abs() < 1e-3,
        "{refresh}"
    );
    let said = of("ROW_LEVEL").unwrap_err();
    assert!(said.contains("DRAMsim3 has no ROW_LEVEL"), "{said}");
    let said = load("ini", &DRAMSIM3.replace("LPDDR4", "LPDDR5")).unwrap_err();
    assert!(
        said.contains("DRAMsim3 has no protocol LPDDR5; give one of DDR3"),
        "{said}"
    );
}

/// What Ramulator 2.1 exports for two ranks of LPDDR5_8Gb_x16 at LPDDR5_6400.
const LPDDR5: &str = "memory_system:
  controllers:
    - impl: LPDDR5
      ENTRY
      refresh_manager:
        impl: MANAGER
      addr_mapper:
        impl: ChRaBaRoCo
      dram:
        impl: LPDDR5
        org:
          dq: 16
          count: [1, 2, 4, 4, 32768, 1024]
        timing: [6400, 2, 4, 17, 15, 15, 17, 34, 49, 28, 8, 9, 2, 2, 4, 2, 4, 4, 4, 5, 10, 16, 168, 96, 3125, 391, 1, 0, 8, 2, 1250, 72, 6]
        channel_width: 16
";

#[test]
fn ramulators_managers() {
    let of = |manager: &str| {
        load(
            "yaml",
            &LPDDR5.replace("MANAGER", manager).replace("ENTRY", ""),
        )
    };
    has(
        &of("PerBank").unwrap(),
        [
            ("refresh.banks", "1"),
            ("timing.tRFCsb", "96"),
            ("timing.tREFSBRD", "6"),
            ("timing.tRREFD", "72"),
            ("timing.tREFI", "12512"), // each 391 cycles one of 32 banks
        ],
    );
    let scattered = of("AllBank\n        scatter_interval: 1562");
    for (machine, turns) in [(of("AllBank"), "together"), (scattered, "in-turn")] {
        has(
            &machine.unwrap(),
            [
                ("refresh.ranks", turns),
                ("timing.tRFCsb", "0"),
                ("timing.tRFC", "168"),
                ("timing.tREFI", "3125"),
                ("mapping", "channel:rank:group:bank:row:column"),
            ],
        );
    }
    let entry = LPDDR5
        .replace("MANAGER", "NoRefresh")
        .replace("ENTRY", "read_bufer_size: 8");
    let said = load("yaml", &entry).unwrap_err();
    assert!(
        said.contains("line 4, controllers.readbufersize: Ramulator has no such entry"),
        "{said}"
    );
}

/// A controller of HBM goes through the banks of both pseudo-channels, or refreshes one of each.
#[test]
fn ramulators_pseudo_channels() {
    let file = |manager: &str| {
        format!(
            r#"{{"memory_system": {{"controllers": [{{"impl": "HBM34", "refresh_manager": {{"impl": "{manager}"}}, "dram":
            {{"impl": "HBM3", "org": {{"dq": 32, "count": [1, 2, 1, 4, 4, 16384, 256]}}, "channel_width": 32, "timing":
            [6400, 4, 40, 62, 30, 52, 90, 144, 66, 18, 20, 4, 8, 6, 8, 10, 14, 20, 40, 48, 2, 832, 640, 832, 640, 16, 12480,
            780, 312]}}}}]}}}}"#
        )
    };
    for (manager, every) in [("PerBank", "24960"), ("HBM34PerBankRefresh", "12480")] {
        has(
            &load("json", &file(manager)).unwrap(),
            [
                ("timing.tREFI", every),
                ("timing.tRFCsb", "640"),
                ("timing.tRREFD", "16"),
                ("geometry.ranks", "2"),
                ("mapping", "row:bank:rank:column:channel"), // above the column
            ],
        );
    }
}

#[test]
fn nvmains_banks_per_refresh() {
    let text = "CLK 400\nBANKS 8\nROWS 65536\nCOLS 32\ntBURST 4\ntREFW 25600000\nRefreshRows 8\nBanksPerRefresh 2\n";
    has(
        &load("config", text).unwrap(),
        [
            ("refresh.banks", "2"),
            ("refresh.ranks", "in-turn"),
            ("timing.tRFCsb", "107"),
            ("timing.tRREFD", "1"),
            ("timing.tREFI", "3125"),
        ],
    );
}
