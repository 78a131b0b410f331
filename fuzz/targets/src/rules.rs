//! Files of rules, over an archive.
//!
//! The input chooses lines; where it says so, a line is followed by bytes of its own.

use std::path::Path;
use std::sync::Arc;
use undercroft_source::{Options, RuleList, SourceOptions, SourceSpec, open};

const LINES: [&str; 24] = [
    "exclude a*",
    "include /a/b",
    "exclude **",
    "include **/c",
    "mkdir /a/b",
    "mkdir /new/deep",
    "symlink ../b:/a",
    "symlink /a:/b",
    "symlink b:/c/d",
    "owner-map 0:1000:5,u:7:8",
    "owner 1:2",
    "chown 1:2 /a/**",
    "chown :3 *",
    "chmod u+x,go-w **",
    "chmod 7777 /",
    "root-mode 0",
    "xattr user.a=0x00 **",
    "xattr security.selinux=x /a",
    "mtime @-1.5",
    "# comment",
    "chmod '",
    "chmod \"644\" '[a'",
    "selinux /nonexistent",
    "add /nonexistent:/a",
];

/// A directory `a` with a file `b`, a link to it, and a symbolic link `c`: made by hand, since an
/// archive needs no more than headers.
fn archive() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, kind, link) in
        [("a/", b'5', ""), ("a/b", b'0', ""), ("a/l", b'1', "a/b"), ("c", b'2', "a/b")]
    {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[108..116].copy_from_slice(b"0000000\0");
        header[116..124].copy_from_slice(b"0000000\0");
        header[124..136].copy_from_slice(b"00000000000\0");
        header[136..148].copy_from_slice(b"00000000000\0");
        header[148..156].fill(b' ');
        header[156] = kind;
        header[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend_from_slice(&header);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

pub(crate) fn run(input: &[u8]) {
    let mut text = Vec::new();
    let mut rest = input;
    while let Some((&choice, after)) = rest.split_first() {
        rest = after;
        let line = LINES.get(usize::from(choice) % (2 * LINES.len()));
        if let Some(line) = line {
            text.extend_from_slice(line.as_bytes());
            if choice >= 0x80 {
                let length = rest.len().min(4);
                text.extend_from_slice(&rest[..length]);
                rest = &rest[length..];
            }
        } else {
            text.push(choice);
        }
        text.push(b'\n');
    }
    let mut list = RuleList::default();
    let added = list.add_text(&text, "fuzzed", Path::new("/nonexistent"));
    let (exclude, rules) = match added.and_then(|()| list.finish()) {
        Ok(finished) => finished,
        Err(error) => return drop(error.to_string()),
    };
    let reading = Options { exclude, ..Options::default() };
    let options = SourceOptions { rules: Arc::new(rules), ..reading.into() };
    let file = tempfile::NamedTempFile::new().expect("a file for the archive");
    std::fs::write(file.path(), archive()).expect("the archive fits");
    let spec = SourceSpec::Path(file.path().to_owned());
    let mut source = open(&spec, &options).expect("the archive is whole").source;
    let mut scanned = 0;
    if let Err(error) = source.scan(&mut |_| scanned += 1) {
        return drop(error.to_string());
    }
    let mut delivered = 0;
    while source.next_entry().expect("a pass is as the scan was").is_some() {
        delivered += 1;
        assert!(delivered <= scanned, "more entries than the scan had");
    }
    assert_eq!(delivered, scanned);
}
