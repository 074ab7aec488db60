//! Words that the reports of all crash tests share.

use serde_json::Value;

/// The first of some names, each once, and how many more there are; and the number of all.
pub fn few(
    names: impl IntoIterator<Item = String>,
    most: usize,
    separator: &str,
) -> (String, usize) {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let all = known.len();
    known.truncate(most);
    let mut told = known.join(separator);
    if all > most {
        told += &format!(" and {} more", all - most);
    }
    (told, all)
}

/// Adds the entries of another object to a report.
pub fn extend(report: &mut Value, more: Value) {
    if let (Value::Object(report), Value::Object(more)) = (report, more) {
        report.extend(more);
    }
}
