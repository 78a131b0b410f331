//! Archives made byte by byte.

/// An archive in the making.
#[derive(Clone, Default)]
pub(crate) struct Archive {
    pub(crate) bytes: Vec<u8>,
}

/// A ustar header with its checksum.
pub(crate) fn header(name: &[u8], entry_type: u8, size: u64) -> [u8; 512] {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name);
    header[100..108].copy_from_slice(b"0000640\0");
    header[108..116].copy_from_slice(b"0001750\0");
    header[116..124].copy_from_slice(b"0000144\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[136..148].copy_from_slice(b"14000000000\0");
    header[156] = entry_type;
    header[257..265].copy_from_slice(b"ustar\x0000");
    seal(header)
}

/// Puts the right checksum into a header.
pub(crate) fn seal(mut header: [u8; 512]) -> [u8; 512] {
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// One record of a pax header.
pub(crate) fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
    let length = (rest.len()..).find(|length| length.to_string().len() + rest.len() == *length);
    [length.unwrap().to_string().as_bytes(), &rest].concat()
}

impl Archive {
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn entry(self, name: &str, entry_type: u8, data: &[u8]) -> Self {
        self.raw(&header(name.as_bytes(), entry_type, data.len() as u64)).raw(data)
    }

    pub(crate) fn file(self, name: &str, data: &[u8]) -> Self {
        self.entry(name, b'0', data)
    }

    pub(crate) fn directory(self, name: &str) -> Self {
        self.entry(name, b'5', b"")
    }

    /// A hard or symbolic link.
    pub(crate) fn link(self, name: &str, entry_type: u8, target: &str) -> Self {
        let mut header = header(name.as_bytes(), entry_type, 0);
        header[157..157 + target.len()].copy_from_slice(target.as_bytes());
        self.raw(&seal(header))
    }

    pub(crate) fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let content: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        self.entry("PaxHeader", b'x', &content)
    }

    pub(crate) fn end(self) -> Vec<u8> {
        self.raw(&[0; 1024]).bytes
    }
}
