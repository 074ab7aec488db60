//! What is given becomes a question, or one line that names the option and the remedy.

use sardonyx_question::{Bytes, Given, Names, Pairs, Question, Seconds, declared, question, read};

#[derive(Clone, Debug, Default, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lid {
    /// None.
    #[default]
    Off,
    HalfOn,
}

question! {
    /// Boil water.
    pub struct Boil {
        /// The pot.
        #[schemars(extend("argument" = "POT", "needed" = true))]
        pot: String,
        /// Seconds.
        #[schemars(range(min = 1, max = 3600))]
        seconds: u64 = 60,
        salt: bool,
        /// Of the salt.
        #[schemars(extend("requires" = "salt"))]
        grams: Option<f64>,
        /// Pots beside it.
        #[schemars(inner(range(min = 1)))]
        beside: Vec<u32>,
        #[schemars(extend("requires" = "beside"))]
        apart: bool,
        lid: Lid,
        room: Bytes = Bytes(4096),
        herbs: Names = Names::of("bay"),
        rest: Seconds = Seconds(50.0),
        set: Pairs,
    }
}

impl Question for Boil {
    fn check(&self, given: &Given) -> Result<(), String> {
        if self.pot == "lid" {
            given.idle(&["seconds"], "under a lid")?;
        }
        Ok(())
    }
}

fn refused(json: &str) -> String {
    read::<Boil>(json).unwrap_err()
}

#[test]
fn what_is_left_out_has_its_default_and_words_mean_what_they_say() {
    let plain = read::<Boil>(r#"{"pot": "a"}"#).unwrap();
    assert_eq!(
        (plain.seconds, plain.room, plain.herbs.0.len()),
        (60, Bytes(4096), 1)
    );
    let json =
        r#"{"pot": "a", "room": "4K", "herbs": "bay, thyme,bay", "set": {"a.b": true, "c": 2}}"#;
    let asked = read::<Boil>(json).unwrap();
    assert_eq!(
        (asked.room, asked.herbs.clone()),
        (Bytes(4096), Names::of("bay,thyme"))
    );
    let whole = serde_json::to_string(&asked).unwrap();
    let again: Boil = serde_json::from_str(&whole).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), whole);
    let list = read::<Boil>(r#"{"pot": "a", "herbs": ["bay,leaf"]}"#).unwrap();
    assert_eq!(list.herbs.0, ["bay,leaf"]);
    let pairs = [("a.b", "true"), ("c", "2")].map(|(key, value)| (key.into(), value.into()));
    assert_eq!(asked.set, Pairs(pairs.to_vec()));
    assert_eq!(
        read::<Boil>(r#"{"pot": "a", "set": ["a.b=true", "c = 2"]}"#)
            .unwrap()
            .set,
        asked.set
    );
}

#[test]
fn what_is_wrong_is_one_line_with_the_option_and_the_remedy() {
    for (json, said) in [
        (r#"{}"#, "pot: is missing"),
        (
            r#"{"pot": "a", "lit": 1}"#,
            "--lit: there is no such option",
        ),
        (
            r#"{"pot": "a", "seconds": 0}"#,
            "--seconds 0: give a whole number of 1 to 3,600",
        ),
        (
            r#"{"pot": "a", "seconds": "x"}"#,
            "--seconds x: give a whole number of 1 to 3,600",
        ),
        (
            r#"{"pot": "a", "seconds": 1.5}"#,
            "--seconds 1.5: give a whole number of 1 to 3,600",
        ),
        (
            r#"{"pot": "a", "grams": 2}"#,
            "--grams: does nothing without --salt; leave it out",
        ),
        (
            r#"{"pot": "a", "grams": 2, "salt": false}"#,
            "--grams: does nothing without --salt; leave it out",
        ),
        (
            r#"{"pot": "a", "room": "4X"}"#,
            "--room 4X: is not a size; give bytes, as in 4096, 4K or 16M",
        ),
        (
            r#"{"pot": "a", "herbs": ","}"#,
            "--herbs: none given; give one at least",
        ),
        (
            r#"{"pot": "a", "seconds": 9999999999999999999}"#,
            "--seconds 9999999999999999999: give a whole number of 1 to 3,600",
        ),
        (
            r#"{"pot": "a", "beside": [5000000000]}"#,
            "--beside 5000000000: give a whole number of 1 to 4,294,967,295",
        ),
        (r#"{"pot": "a", "beside": 1}"#, "--beside 1: give a list"),
        (
            r#"{"pot": "a", "apart": true, "beside": []}"#,
            "--apart: does nothing without --beside; leave it out",
        ),
        (r#"{"pot": "a", "salt": 1}"#, "--salt 1: give true or false"),
        (r#"{"pot": 1}"#, "pot 1: give a text"),
        (
            r#"{"pot": "a", "lid": "x"}"#,
            "--lid x: give one of half-on, off",
        ),
        (
            r#"{"pot": "a", "grams": "x", "salt": true}"#,
            "--grams x: give a number",
        ),
        (
            r#"{"pot": "a", "set": ["k"]}"#,
            "--set k: not of the form KEY=VALUE; for example --set esd.efit_bytes=65536",
        ),
        (
            r#"{"pot": "lid", "seconds": 2}"#,
            "--seconds: does nothing under a lid; leave it out",
        ),
    ] {
        assert_eq!(refused(json), said, "{json}");
    }
    assert!(read::<Boil>(r#"{"pot": "lid"}"#).is_ok());
}

#[test]
fn a_declaration_has_the_options_in_their_order_with_defaults_and_help() {
    let schema = declared::<Boil>();
    let order = [
        "pot", "seconds", "salt", "grams", "beside", "apart", "lid", "room", "herbs", "rest", "set",
    ];
    assert_eq!(schema["order"], serde_json::json!(order));
    assert_eq!(schema["description"], "Boil water.");
    let seconds = &schema["properties"]["seconds"];
    assert_eq!(
        (&seconds["default"], &seconds["description"]),
        (&60.into(), &"Seconds.".into())
    );
}

#[test]
fn times_are_seconds_whether_they_have_a_unit_or_not() {
    for (text, seconds) in [
        ("\"90s\"", 90.0),
        ("\"10m\"", 600.0),
        ("\"2h\"", 7200.0),
        ("0.5", 0.5),
    ] {
        let asked = read::<Boil>(&format!(r#"{{"pot": "a", "rest": {text}}}"#)).unwrap();
        assert_eq!(asked.rest, Seconds(seconds), "{text}");
    }
    for text in [
        "\"s\"",
        "\"90\"",
        "\"1.5h\"",
        "\"1234567s\"",
        "\"9é\"",
        "-1",
        "1000000000000",
        "[1]",
    ] {
        let said = refused(&format!(r#"{{"pot": "a", "rest": {text}}}"#));
        let shown = text.trim_matches('"');
        assert_eq!(
            said,
            format!("--rest {shown}: is not a duration; give 90s, 10m or 2h")
        );
    }
}

#[test]
fn sizes_have_bounds() {
    assert_eq!(Bytes(4096).within("--room", 64, 4096), Ok(()));
    let said = Bytes(4097).within("--room", 64, 4096).unwrap_err();
    assert_eq!(said, "--room 4097: give 64 to 4,096 bytes");
}
