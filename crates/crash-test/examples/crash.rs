//! Crash tests a recording without Python, for those who work on it: `crash QUESTION.json`, whose keys are `question::Question`'s.

use sardonyx_crash_test::question::Question;
use sardonyx_crash_test::report::report;
use sardonyx_crash_test::search::explore::explore;

fn main() {
    let path = std::env::args().nth(1).expect("a question");
    let text = std::fs::read_to_string(path).expect("a file");
    let question: Question = serde_json::from_str(&text).expect("a question");
    match explore(&question, &|_, _| true) {
        Ok(explored) => println!("{:#}", report(&question, &explored)),
        Err(e) => eprintln!("error: {e}"),
    }
}
