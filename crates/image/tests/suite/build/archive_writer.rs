//! Large archives, written without a tree on the host.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes POSIX archives entry by entry.
pub(crate) struct ArchiveWriter(BufWriter<File>);

impl ArchiveWriter {
    pub(crate) fn create(path: &Path) -> Self {
        Self(BufWriter::with_capacity(1 << 20, File::create(path).unwrap()))
    }

    /// A regular file.
    pub(crate) fn file(&mut self, name: &str, contents: &[u8]) {
        self.header(b'0', name, "", contents.len() as u64);
        self.data(contents);
    }

    /// A further name of the file `first`.
    pub(crate) fn link(&mut self, name: &str, first: &str) {
        self.header(b'1', name, first, 0);
    }

    /// A directory.
    pub(crate) fn directory(&mut self, name: &str) {
        self.header(b'5', name, "", 0);
    }

    /// An empty file whose name, of any form, is in a pax header.
    pub(crate) fn renamed(&mut self, name: &str) {
        self.pax(&[("path", name)]);
        self.header(b'0', "renamed", "", 0);
    }

    /// A sparse file of `size` bytes: `pieces` of `length` bytes every `step` bytes, each filled
    /// with the value that `fill` has for its number.
    pub(crate) fn comb(&mut self, name: &str, size: u64, comb: &Comb, fill: impl Fn(u64) -> u8) {
        self.pax(&[
            ("GNU.sparse.major", "1"),
            ("GNU.sparse.minor", "0"),
            ("GNU.sparse.name", name),
            ("GNU.sparse.realsize", &size.to_string()),
        ]);
        let mut map = format!("{}\n", comb.pieces).into_bytes();
        for piece in 0..comb.pieces {
            map.extend(format!("{}\n{}\n", piece * comb.step, comb.length).bytes());
        }
        map.resize(map.len().next_multiple_of(512), 0);
        self.header(b'0', "sparse", "", map.len() as u64 + comb.pieces * comb.length);
        self.0.write_all(&map).unwrap();
        for piece in 0..comb.pieces {
            self.0.write_all(&vec![fill(piece); comb.length as usize]).unwrap();
        }
        let tail = (comb.pieces * comb.length).next_multiple_of(512) - comb.pieces * comb.length;
        self.0.write_all(&vec![0; tail as usize]).unwrap();
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) {
        self.0.write_all(&[0; 1024]).unwrap();
        self.0.flush().unwrap();
    }

    /// An extended header for the next entry.
    fn pax(&mut self, records: &[(&str, &str)]) {
        let bytes: Vec<u8> =
            records.iter().flat_map(|(key, value)| pax_record(key, value)).collect();
        self.header(b'x', "pax", "", bytes.len() as u64);
        self.data(&bytes);
    }

    fn header(&mut self, kind: u8, name: &str, target: &str, size: u64) {
        let mut header = tar::Header::new_ustar();
        header.set_path(name).unwrap();
        if !target.is_empty() {
            header.set_link_name(target).unwrap();
        }
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_mode(if kind == b'5' { 0o755 } else { 0o644 });
        header.set_uid(7);
        header.set_gid(8);
        header.set_mtime(1_000_000_000);
        header.set_size(size);
        header.set_cksum();
        self.0.write_all(header.as_bytes()).unwrap();
    }

    fn data(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
        let tail = bytes.len().next_multiple_of(512) - bytes.len();
        self.0.write_all(&[0; 512][..tail]).unwrap();
    }
}

/// Pieces of data at equal distances, in bytes.
pub(crate) struct Comb {
    pub(crate) pieces: u64,
    pub(crate) length: u64,
    pub(crate) step: u64,
}

/// "LENGTH KEY=VALUE\n", whose length counts itself.
fn pax_record(key: &str, value: &str) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length.to_string().len() + rest != length {
        length += 1;
    }
    format!("{length} {key}={value}\n").into_bytes()
}
