//! Descriptions of trees: mtree(5), composefs-dump(5), prototype files.
//!
//! The input chooses pieces of lines; where it says so, bytes of its own stand between them. Nothing
//! is read but the description: contents that it names are those of a directory with one file.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;
use undercroft_source::description::DescriptionSource;
use undercroft_source::{DescriptionFormat, DescriptionOptions, Kind, Options, Source};

const MTREE: [&str; 40] = [
    "\n",
    " ",
    "./a",
    "./b",
    "./a/b",
    "a",
    "b",
    ".",
    "..",
    "./",
    "\\040",
    "\\M^?",
    "\\#",
    "\\\n",
    "/set",
    "/unset all",
    " type=dir",
    " type=file",
    " type=link",
    " type=char",
    " type=fifo",
    " mode=755",
    " mode=u+x",
    " link=a",
    " link=../b",
    " device=native,1,2",
    " device=0x1234",
    " size=0",
    " size=4",
    " nlink=2",
    " inode=1",
    " tags=names-of:1",
    " time=1.5",
    " time=-1.2",
    " sha256=",
    " md5=d41d8cd98f00b204e9800998ecf8427e",
    " contents=file",
    " optional",
    " nochange",
    " uname=root",
];

const COMPOSEFS: [&str; 24] = [
    "\n",
    " ",
    "/ 0 40755 2 0 0 0 1.5 - - -",
    "/a 0 40755 2 0 0 0 0.0 - - -",
    "/a/b ",
    "/b ",
    "0 ",
    "4 ",
    "100644 ",
    "@100644 ",
    "120777 ",
    "20600 ",
    "1 0 0 0 0.0 ",
    "1 0 0 258 -5.7 ",
    "- - -",
    "/b - -",
    "/a/b - -",
    "file - -",
    "- data -",
    "- \\x00\\n\\\\ -",
    " user.a=",
    " user.a\\x3d=b",
    " security.b=c",
    "- - d41d8cd98f00b204e9800998ecf8427ed41d8cd98f00b204e9800998ecf8427e",
];

const PROTOTYPE: [&str; 18] = [
    "\n",
    " ",
    "x 0 0 d--755 0 0 ",
    "a d--755 0 0 ",
    "b ---644 0 0 file ",
    "c p-g600 1 2 ",
    "d -u-777 0 0 ",
    "e l--777 0 0 target ",
    "f b--600 0 0 1 2 ",
    "g c--600 0x1 07 1 2 ",
    "$ ",
    "$",
    ": comment ",
    "a/b ",
    "../x ",
    "absent ",
    "d",
    "0 ",
];

pub(crate) fn mtree(input: &[u8]) {
    run(DescriptionFormat::Mtree, "#mtree\n", &MTREE, input);
}

pub(crate) fn composefs(input: &[u8]) {
    run(DescriptionFormat::Composefs, "/ 0 40755 2 0 0 0 1.5 - - -\n", &COMPOSEFS, input);
}

pub(crate) fn prototype(input: &[u8]) {
    run(DescriptionFormat::Prototype, "x 0 0 d--755 0 0 ", &PROTOTYPE, input);
}

fn run(format: DescriptionFormat, begin: &str, pieces: &[&str], input: &[u8]) {
    let mut text = begin.as_bytes().to_vec();
    for &choice in input {
        match pieces.get(usize::from(choice) % (pieces.len() + pieces.len() / 4)) {
            Some(piece) => text.extend_from_slice(piece.as_bytes()),
            None => text.push(choice),
        }
    }
    let Ok(home) = tempfile::tempdir() else { return };
    if std::fs::write(home.path().join("file"), "data").is_err() {
        return;
    }
    read(format, text.clone(), Some(home.path()));
    // Without contents a prototype file would name files of this machine.
    let without = Some(home.path()).filter(|_| format == DescriptionFormat::Prototype);
    read(format, text, without);
    // Raw bytes, which need not be text.
    read(format, [begin.as_bytes(), input].concat(), without);
}

/// Reads a description twice, and checks what every source promises.
fn read(format: DescriptionFormat, text: Vec<u8>, contents: Option<&Path>) {
    let description = DescriptionOptions {
        contents: contents.map(Path::to_owned),
        slashes_are_spaces: text.len().is_multiple_of(2),
    };
    let options = Options { threads: std::num::NonZeroUsize::new(1), ..Options::default() };
    let bytes = text.len();
    let mut source =
        DescriptionSource::from_reader(format, Cursor::new(text), &description, &options);
    let mut scanned = Vec::new();
    if let Err(error) = source.scan(&mut |entry| scanned.push(entry.clone())) {
        return drop(error.to_string());
    }
    assert!(scanned.len() <= bytes, "more entries than the description has bytes");
    let mut known = BTreeSet::new();
    for expected in &scanned {
        let entry = match source.next_entry() {
            Ok(entry) => entry,
            // A digest that was not computed before.
            Err(error) => return drop(error.to_string()),
        };
        assert_eq!(entry.as_ref(), Some(expected), "a pass is as the scan was");
        let mut end = 0;
        loop {
            match source.next_data() {
                Ok(Some(data)) => end = data.offset + data.chunk.len() as u64,
                Ok(None) => break,
                Err(error) => return drop(error.to_string()),
            }
        }
        match &expected.kind {
            Kind::Regular { size, .. } => assert!(end <= *size, "data behind the end"),
            Kind::HardLink(first) => assert!(known.contains(first), "a link before its file"),
            _ => assert_eq!(end, 0, "data of something else"),
        }
        if let Some((parent, _)) = expected.path.split_last() {
            let is_known = parent.is_empty()
                || known
                    .iter()
                    .any(|path: &undercroft_source::EntryPath| path.as_bytes() == parent);
            assert!(is_known, "an entry before its directory");
        }
        assert!(known.insert(expected.path.clone()), "a path comes twice");
    }
    if let Ok(more) = source.next_entry() {
        assert_eq!(more, None);
    }
}
