//! Accesses of programs as instrumentation writes them: Pin, Valgrind's Lackey, DynamoRIO.

use sardonyx_trace::{Format, Op};

use super::{in_short, plain};

const PIN: &str = "0x7f10: R 0x1000\n0x7f12: W 0x1040\n#eof\n";

const LACKEY: &str = "==12== Lackey, an example Valgrind tool\n==12==\nI  04001000,3\n L 1ffeffe7e0,8\n\
                      I  04001003,5\nI  04001008,2\n S 103c,8\n M 2000,4\n";

const VIEW: &str = "Output format:\n<--record#-> <--instr#->: <---tid---> <record details>\n\
                    ------------------------------------------------------------\n\
                    1 0: W0.T92937 <marker: version 3>\n\
                    2 1: W0.T92937 ifetch 3 byte(s) @ 0x00007f6fdd3ec360 48 89 e7 mov %rsp -> %rdi\n\
                    3 1: W0.T92937 write 8 byte(s) @ 0x0000000000001038 by PC 0x00007f6fdd3ec363\n\
                    4 2: W0.T7 ifetch 5 byte(s) @ 0x00007f6fdd3ec363 e8 non-branch\n\
                    5 2: W0.T7 read 16 byte(s) @ 0x0000000000001038 by PC 0x00007f6fdd3ec368\n\
                    View tool results:\n 2 : total instructions\n";

#[test]
fn accesses_of_pin_lackey_and_dynamorio_are_a_programs_own() {
    let wanted = [(1, 0, false, 64), (1, 0, true, 65)];
    assert_eq!(in_short(PIN, Format::Pinatrace), wanted);

    let wanted = [
        (1, 0, false, 0x1f_feff_e7e0 / 64),
        (2, 0, true, 0x40),
        (0, 0, true, 0x41),
        (0, 0, false, 0x80),
        (0, 0, true, 0x80),
    ];
    assert_eq!(in_short(LACKEY, Format::Lackey), wanted);
    let error = plain(" L 10\n", Format::Lackey).unwrap_err();
    assert!(error.contains("ADDRESS,SIZE"), "{error}");

    // An access of eight bytes at the end of a line is within it; one of sixteen is not.
    let wanted = [(1, 0, true, 0x40), (1, 1, false, 0x40), (0, 1, false, 0x41)];
    assert_eq!(in_short(VIEW, Format::DynamoRio), wanted);
    assert!(plain("LD 64\n", Format::DynamoRio).is_err());

    for (format, text) in [
        (Format::Pinatrace, PIN),
        (Format::Lackey, LACKEY),
        (Format::DynamoRio, VIEW),
    ] {
        let first = &plain(text, format).unwrap()[0];
        assert!(matches!(first.op, Op::Load | Op::Store), "{format}");
    }
}

/// The view tool names threads `T77`, `77` (from 2022 on) or, with the workload, `W0.T77`.
#[test]
fn threads_of_dynamorio_are_told_apart_in_every_year() {
    for [one, other] in [
        ["T77", "T78"],
        ["1 1: T77", "3 1: T78"],
        ["1 1: 77", "3 1: 78"],
        ["1 1: W0.T77", "3 1: W1.T77"],
    ] {
        let text = format!(
            "{one} ifetch 4 byte(s) @ 0x10 non-branch\n{one} write 8 byte(s) @ 0x1000 by PC 0x10\n\
             {other} read 8 byte(s) @ 0x1040 by PC 0x10\n{one} read 8 byte(s) @ 0x1080 by PC 0x10\n"
        );
        let wanted = [(1, 0, true, 0x40), (0, 1, false, 0x41), (0, 0, false, 0x42)];
        assert_eq!(in_short(&text, Format::DynamoRio), wanted, "{one}");
    }
}
