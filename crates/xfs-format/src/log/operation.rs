//! Operations, the units of which records consist, and the header of a transaction
//! (docs/format/journal/operations.md).

use crate::bytes::{be32, le32, put_be32};
use crate::{FieldDefect, Rule};
use bitflags::bitflags;

bitflags! {
    /// The flags of an operation. Only the combinations of the reference occur.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct OperationFlags: u8 {
        /// Opens a transaction.
        const START = 0x01;
        /// Closes it.
        const COMMIT = 0x02;
        /// The payload is cut here and goes on in the next record.
        const CONTINUE = 0x04;
        /// The payload continues the last region of the transaction.
        const WAS_CONTINUED = 0x08;
        /// Last piece of a region that was cut.
        const END = 0x10;
        /// The volume was unmounted.
        const UNMOUNT = 0x20;
    }
}

/// The writer of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LogClient {
    /// A transaction.
    Transaction = 0x69,
    /// The journal itself: unmount records.
    Log = 0xaa,
}

/// Header of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationHeader {
    /// Transaction.
    pub transaction: u32,
    /// Bytes of payload that follow in this record.
    pub len: u32,
    /// Its writer.
    pub client: LogClient,
    /// Its flags.
    pub flags: OperationFlags,
}

impl OperationHeader {
    /// Bytes in the log.
    pub const LEN: usize = 12;

    /// Reads the first bytes of `bytes`, which are at least as long as a header.
    ///
    /// # Errors
    /// A client that does not exist.
    pub fn decode(bytes: &[u8]) -> Result<Self, FieldDefect> {
        let client = match bytes[8] {
            0x69 => LogClient::Transaction,
            0xaa => LogClient::Log,
            found => {
                let rule = Rule::Text("0x69 (transaction) or 0xaa (log)");
                return Err(FieldDefect { field: "oh_clientid", found: found.into(), rule });
            }
        };
        Ok(Self {
            transaction: be32(bytes, 0),
            len: be32(bytes, 4),
            client,
            flags: OperationFlags::from_bits_retain(bytes[9]),
        })
    }

    /// Writes the header to the start of `out`.
    pub fn encode(&self, out: &mut [u8]) {
        put_be32(out, 0, self.transaction);
        put_be32(out, 4, self.len);
        out[8..Self::LEN].copy_from_slice(&[self.client as u8, self.flags.bits(), 0, 0]);
    }
}

/// First region of every transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionHeader {
    /// The number that all its operations carry.
    pub transaction: u32,
    /// Regions that follow. No reader relies on it.
    pub regions: u32,
}

impl TransactionHeader {
    /// Bytes in the log.
    pub const LEN: usize = 16;
    /// "TRAN", written in the byte order of the host.
    const MAGIC: u32 = 0x5452_414e;
    /// The only type that is written: a checkpoint.
    const CHECKPOINT: u32 = 40;

    /// Reads the header; the type, of which older kernels had many, is not looked at.
    ///
    /// # Errors
    /// The region has another length, or the magic number is wrong.
    pub fn decode(region: &[u8]) -> Result<Self, FieldDefect> {
        let len = Rule::Equal(Self::LEN as u64);
        FieldDefect::unless(region.len() == Self::LEN, "length", region.len() as u64, len)?;
        let magic = le32(region, 0);
        FieldDefect::unless(magic == Self::MAGIC, "th_magic", magic, Rule::Equal(0x5452_414e))?;
        Ok(Self { transaction: le32(region, 8), regions: le32(region, 12) })
    }

    /// The bytes of the region.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        let words = [Self::MAGIC, Self::CHECKPOINT, self.transaction, self.regions];
        for (out, word) in out.chunks_exact_mut(4).zip(words) {
            out.copy_from_slice(&word.to_le_bytes());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of the worked checkpoint of the reference.
    #[test]
    fn headers_are_those_of_the_reference() {
        let start = [0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0, 0x69, 1, 0, 0];
        let header = OperationHeader::decode(&start).unwrap();
        assert_eq!(header.transaction, 0x1234_5678);
        assert_eq!((header.client, header.flags), (LogClient::Transaction, OperationFlags::START));
        let mut again = [0xff; 12];
        header.encode(&mut again);
        assert_eq!(again, start);
        let mut bad = start;
        bad[8] = 0x70;
        assert_eq!(OperationHeader::decode(&bad).unwrap_err().field, "oh_clientid");

        let region = *b"NART\x28\0\0\0\x78\x56\x34\x12\x04\0\0\0";
        let header = TransactionHeader::decode(&region).unwrap();
        assert_eq!(header, TransactionHeader { transaction: 0x1234_5678, regions: 4 });
        assert_eq!(header.encode(), region);
        assert!(TransactionHeader::decode(&region[..12]).is_err());
        assert!(TransactionHeader::decode(&[0; 16]).is_err());
    }
}
