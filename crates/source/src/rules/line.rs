//! Lines of a file of rules.

use super::error::RuleProblem;

/// The words of a line; none of a comment.
pub(super) fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, RuleProblem> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii();
    if rest.first() == Some(&b'#') {
        return Ok(words);
    }
    while let Some(&first) = rest.first() {
        let (word, after) = match first {
            quote @ (b'"' | b'\'') => {
                let end = rest[1..].iter().position(|&byte| byte == quote);
                let end = end.ok_or(RuleProblem::Quote)? + 1;
                (&rest[1..end], &rest[end + 1..])
            }
            _ => {
                let end = rest.iter().position(u8::is_ascii_whitespace);
                rest.split_at(end.unwrap_or(rest.len()))
            }
        };
        words.push(word.to_vec());
        rest = after.trim_ascii_start();
    }
    Ok(words)
}

/// A line as messages have it.
pub(super) fn shown(line: &[u8]) -> String {
    const LONGEST: usize = 80;
    let line = line.trim_ascii();
    let cut = &line[..line.len().min(LONGEST)];
    let end = if cut.len() < line.len() { "..." } else { "" };
    format!("{}{end}", cut.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_stand_in_quotes() {
        let of = |text: &str| {
            let words = words(text.as_bytes()).unwrap();
            words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(of("  chmod\t644  '/a b/*' \r"), ["chmod", "644", "/a b/*"]);
        assert_eq!(of("add \"it's\" x#y"), ["add", "it's", "x#y"]);
        assert!(of("  # chmod").is_empty() && of(" ").is_empty());
        assert_eq!(of("mkdir ''"), ["mkdir", ""]);
        assert!(words(b"add 'x").is_err());
    }
}
