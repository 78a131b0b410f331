//! Fields of formats: qcow2 is big-endian, volume managers are little-endian.

pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}

pub(crate) fn le32(bytes: &[u8], at: usize) -> u32 {
    be32(bytes, at).swap_bytes()
}

pub(crate) fn le64(bytes: &[u8], at: usize) -> u64 {
    be64(bytes, at).swap_bytes()
}
