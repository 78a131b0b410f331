//! Widths of words, so that none is cut.

/// Width of `text` in a sans-serif face of `size` pixels, rounded up: of DejaVu Sans, which is wider
/// than the other faces that systems choose.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// The advance of a character as a share of the size of the face, by classes.
fn advance(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '\'' => 0.28,
        ' ' | '.' | ',' | ':' | ';' | '|' | '/' | '\\' | 'I' | 'f' | '-' | '(' | ')' | '['
        | ']' => 0.4,
        'r' | 't' => 0.42,
        'm' | 'M' | 'W' | '%' | '@' | 'w' => 1.0,
        '+' | '=' | '<' | '>' | '~' | '^' | '#' | '&' => 0.84,
        'A'..='Z' => 0.8,
        ' '..='~' => 0.64,
        _ => 1.0,
    }
}

/// The beginning of `text` that fits into `room` pixels, with an ellipsis where more follows.
pub(super) fn fitted(text: &str, room: f64, size: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = advance('…') * size;
    for character in text.chars() {
        used += advance(character) * size;
        if used > room {
            break;
        }
        kept.push(character);
    }
    kept + "…"
}

/// `text` in lines of at most `room` pixels; a word that is longer than that is a line of its own.
pub(super) fn wrapped(text: &str, room: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_nothing_is_lost() {
        let text = "a title that is longer than its picture is wide";
        let lines = wrapped(text, 120.0, 12.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 12.0) <= 120.0));
        assert_eq!(lines.join(" "), text);
        assert_eq!(fitted("short", 100.0, 12.0), "short");
        let cut = fitted(text, 100.0, 12.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 100.0, "{cut}");
    }
}
