//! Help with a name that nobody knows: which known ones are spelt like it.

/// Up to three of `known` within a third of `name`'s length in edits, or that begin with it, the nearest first.
pub fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Vec<&'k str> {
    if name.len() > 100 {
        return Vec::new();
    }
    let allowed = (name.chars().count() / 3).max(1);
    let distances = known.map(|candidate| (edits(name, candidate), candidate));
    let mut near: Vec<_> = distances
        .filter(|(distance, known)| {
            *distance <= allowed || name.len() > 2 && known.starts_with(name)
        })
        .collect();
    near.sort();
    near.into_iter().map(|near| near.1).take(3).collect()
}

/// A question with the nearest of `known`, to be put before a list; empty if no name is near.
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    let question = |near: &&str| format!("did you mean \"{near}\"? ");
    near.first().map(question).unwrap_or_default()
}

/// How many letters are to be put in, left out, changed, or swapped with their neighbours.
fn edits(a: &str, b: &str) -> usize {
    let [a, b]: [Vec<char>; 2] =
        [a, b].map(|name| name.chars().flat_map(char::to_lowercase).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let changed = row[j] + usize::from(a[i] != b[j]);
            let mut least = changed.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_begins_another_is_near() {
        let known = ["dedup-sha1", "dewrite"];
        assert_eq!(nearest("dedup", known.into_iter()), ["dedup-sha1"]);
        assert!(nearest("de", known.into_iter()).is_empty());
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("tRCD", "trcd"), 0);
        assert_eq!(edits("redsi", "redis"), 1);
    }
}
