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

fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("tRCD", "trcd"), 0);
    }
}
