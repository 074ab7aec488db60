//! Records a program without Python, for those who work on the recorder: `record REQUEST.json PLUGIN`, whose keys are
//! `sardonyx_record::Wanted`'s.

use std::sync::Arc;

use sardonyx_record::{Wanted, record};

fn main() {
    let path = std::env::args().nth(1).expect("a request");
    let plugin = std::env::args_os().nth(2).expect("the plugin");
    let text = std::fs::read_to_string(path).expect("a file");
    let wanted: Wanted = serde_json::from_str(&text).expect("a request");
    match wanted
        .request(plugin.into())
        .and_then(|request| record(&request, &Arc::default()))
    {
        Ok(outcome) => println!("{outcome:?}"),
        Err(e) => println!("error: {e}"),
    }
}
