//! The keys of the merge as tables for the documentation and as figures for an answer: the meaning of each, and which
//! of them no source gives.

use serde_json::{Value, json};

use super::algorithms;
use sardonyx::config::{declared, document};
use sardonyx::settings::{Doubt, Origin, Row, Settings};

/// Rows of declared keys.
macro_rules! row_list {
    ($($key:ident)*) => { vec![$(&$key.row),*] };
}
pub(crate) use row_list;

pub fn rows() -> Vec<&'static Row> {
    algorithms::built_in()
        .flat_map(|known| (known.keys)())
        .collect()
}

/// The keys as a table with tabs between the cells, `docs/tables/merge-keys.tsv`.
pub fn table() -> String {
    table_of(rows())
}

pub(super) fn table_of(rows: Vec<&'static Row>) -> String {
    let mut text = "key\ttakes\tdefault\tmeaning\n".to_owned();
    for row in rows {
        let (_, default) = said(&Settings::default(), row);
        let assumed = match row.default {
            Some((_, Origin::Assumed(why))) => match row.doubt {
                Some(Doubt::Between(low, high, _)) => {
                    format!(" (*assumed*: {why}. From {low} to {high})")
                }
                _ => format!(" (*assumed*: {why})"),
            },
            _ => String::new(),
        };
        let default = default.to_string().replace('"', "");
        let (name, range) = (row.name, row.kind.range().replace('"', ""));
        text += &format!("`{name}`\t{range}\t{default}\t{}{assumed}\n", row.meaning);
    }
    text
}

pub(super) fn said(settings: &Settings, row: &Row) -> (String, Value) {
    let default = row.default.map(|(value, _)| value);
    let value = settings.find(row.name).or(default);
    (row.name.to_owned(), value.map_or(Value::Null, document))
}

/// A value that no source gives, if the user has not given it either, with the values that it may have instead.
pub(super) fn assumed(settings: &Settings, row: &Row) -> Option<Value> {
    let (default, Origin::Assumed(why)) = row.default? else {
        return None;
    };
    let (name, value) = said(settings, row);
    let range = || declared(row, default, settings).map(|range| range.document());
    settings
        .find(row.name)
        .is_none()
        .then(|| json!({"parameter": name, "value": value, "why": why, "range": range()}))
}
