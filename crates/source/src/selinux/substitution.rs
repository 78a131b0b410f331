//! Equivalent paths: a tree that is labelled as another one is.

use super::spec::is_space;

/// The rules of one file. The last that fits is applied, once.
#[derive(Debug, Default)]
pub(super) struct Substitutions {
    rules: Vec<Substitution>,
}

#[derive(Debug)]
struct Substitution {
    from: Box<[u8]>,
    to: Box<[u8]>,
}

impl Substitutions {
    /// Lines of two paths: one, and the one that it is labelled as. Others are passed over, as by
    /// libselinux.
    pub(super) fn parse(text: &[u8]) -> Self {
        let rule = |line: &[u8]| {
            let mut words = line.split(|&byte| is_space(byte)).filter(|word| !word.is_empty());
            let from = words.next().filter(|word| word[0] != b'#')?;
            Some(Substitution { from: from.into(), to: words.next()?.into() })
        };
        let rules = text.split(|&byte| byte == b'\n').filter_map(rule);
        Self { rules: rules.collect() }
    }

    /// The path as which this one is labelled, if there is a rule for it.
    pub(super) fn apply(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.rules.iter().rev().find_map(|Substitution { from, to }| {
            let mut rest = path.strip_prefix(&**from)?;
            match rest.first() {
                // One slash is in `to`.
                Some(b'/') if **to == *b"/" => rest = &rest[1..],
                Some(b'/') | None => {}
                Some(_) => return None,
            }
            Some([&**to, rest].concat())
        })
    }
}
