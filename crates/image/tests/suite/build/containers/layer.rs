//! Layers made byte by byte.

use std::io::Write;

/// A tar archive in the making. Paths have at most 100 bytes.
#[derive(Clone, Default)]
pub(crate) struct Layer {
    bytes: Vec<u8>,
    records: Vec<(String, Vec<u8>)>,
    /// Seconds of the next entry's mtime: every entry has another.
    clock: u64,
}

impl Layer {
    /// A layer whose times begin at `seconds`.
    pub(crate) fn at(seconds: u64) -> Self {
        Self { clock: seconds, ..Self::default() }
    }

    /// An attribute of the next entry.
    pub(crate) fn xattr(mut self, name: &str, value: &[u8]) -> Self {
        self.records.push((format!("SCHILY.xattr.{name}"), value.to_vec()));
        self
    }

    pub(crate) fn file(self, path: &str, contents: &[u8]) -> Self {
        self.owned(path, contents, 0o644, (1000, 100))
    }

    pub(crate) fn owned(self, path: &str, data: &[u8], mode: u32, owner: (u64, u64)) -> Self {
        self.entry(path, b'0', "", data, mode, owner, (0, 0))
    }

    pub(crate) fn directory(self, path: &str, mode: u32) -> Self {
        self.entry(path, b'5', "", b"", mode, (7, 8), (0, 0))
    }

    pub(crate) fn symlink(self, path: &str, target: &str) -> Self {
        self.entry(path, b'2', target, b"", 0o777, (3, 4), (0, 0))
    }

    /// A hard link.
    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        self.entry(path, b'1', target, b"", 0o644, (1000, 100), (0, 0))
    }

    pub(crate) fn device(self, path: &str, kind: u8, number: (u32, u32)) -> Self {
        self.entry(path, kind, "", b"", 0o600, (0, 6), number)
    }

    pub(crate) fn fifo(self, path: &str) -> Self {
        self.entry(path, b'6', "", b"", 0o620, (5, 5), (0, 0))
    }

    /// `.wh.NAME` or `.wh..wh..opq`, by its whole path.
    pub(crate) fn mark(self, path: &str) -> Self {
        self.entry(path, b'0', "", b"", 0o600, (0, 0), (0, 0))
    }

    /// The archive.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.bytes.extend([0; 1024]);
        self.bytes
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of a header")]
    fn entry(
        mut self,
        path: &str,
        kind: u8,
        target: &str,
        data: &[u8],
        mode: u32,
        owner: (u64, u64),
        device: (u32, u32),
    ) -> Self {
        self.clock += 1;
        let mut records = std::mem::take(&mut self.records);
        records.push(("mtime".into(), format!("{}.5", self.clock).into_bytes()));
        let pax: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        self.header("pax", b'x', "", pax.len() as u64, 0, (0, 0), (0, 0));
        self.data(&pax);
        self.header(path, kind, target, data.len() as u64, mode, owner, device);
        self.data(data);
        self
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of a header")]
    fn header(
        &mut self,
        path: &str,
        kind: u8,
        target: &str,
        size: u64,
        mode: u32,
        owner: (u64, u64),
        device: (u32, u32),
    ) {
        let mut header = tar::Header::new_ustar();
        // As it is: the crate refuses `..`, which a test needs.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_mode(mode);
        header.set_uid(owner.0);
        header.set_gid(owner.1);
        header.set_mtime(self.clock);
        header.set_size(size);
        header.set_device_major(device.0).unwrap();
        header.set_device_minor(device.1).unwrap();
        header.set_cksum();
        self.bytes.write_all(header.as_bytes()).unwrap();
    }

    fn data(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
    }
}

/// "LENGTH KEY=VALUE\n", whose length counts itself.
fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let length = (rest + 1..).find(|length| length.to_string().len() + rest == *length).unwrap();
    [format!("{length} {key}=").as_bytes(), value, b"\n"].concat()
}
