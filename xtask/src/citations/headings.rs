//! Headings of a document, and the anchors that GitHub gives them.

use std::collections::BTreeSet;

/// The anchors of all headings of a document.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let first = anchor(heading.trim().trim_end_matches('#').trim_end());
        let mut name = first.clone();
        let mut number = 0;
        while !anchors.insert(name) {
            number += 1;
            name = format!("{first}-{number}");
        }
    }
    anchors
}

/// GitHub's anchor of a heading: lower case, spaces to hyphens, and of other characters letters,
/// digits, hyphens and underscores alone. A link counts with its text.
fn anchor(heading: &str) -> String {
    let mut text = heading.to_owned();
    while let Some((start, end)) = text.find("](").and_then(|start| {
        let end = start + text[start..].find(')')?;
        Some((start, end))
    }) {
        text.replace_range(start..=end, "");
    }
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

/// The lines of a document that are no code, with their numbers.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# B+trees\n\n## Where `a -n` and B differ\n### Un_der  [Link](x) #\n## Same\n\
                    ## Same\n```\n## Code\n```\n#Not\n";
        let known = ["btrees", "where-a--n-and-b-differ", "un_der--link", "same", "same-1"];
        assert_eq!(anchors(text), known.map(str::to_owned).into());
        assert_eq!(anchor("Größe, in Bytes!"), "größe-in-bytes");
    }
}
