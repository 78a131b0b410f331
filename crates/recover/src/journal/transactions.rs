//! Transactions put together from the operations of records.

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::Lsn;
use undercroft_xfs_format::{LogClient, OperationFlags, OperationHeader, TransactionHeader};

use super::records::Record;

/// Bytes of transactions under way that are kept: the largest checkpoints of a kernel are smaller.
const OPEN_BYTES: usize = 256 << 20;

/// Whether a record says that the volume was unmounted: with its only operation.
pub(super) fn is_unmount(record: &Record) -> bool {
    let operation = record.data.get(..OperationHeader::LEN).map(OperationHeader::decode);
    record.operations == 1
        && operation.is_some_and(|operation| {
            operation.is_ok_and(|operation| operation.flags.contains(OperationFlags::UNMOUNT))
        })
}

/// A transaction under way.
struct Open {
    lsn: Lsn,
    has_header: bool,
    regions: Vec<Vec<u8>>,
}

/// The transactions under way, by number.
#[derive(Default)]
pub(super) struct Transactions {
    open: FxHashMap<u32, Open>,
    bytes: usize,
}

impl Transactions {
    /// Goes on with a record; hands over the regions of each transaction that ends in it, with its
    /// position.
    pub(super) fn add(&mut self, record: &Record, mut ended: impl FnMut(Lsn, &[Vec<u8>])) {
        if record.is_behind_a_gap {
            self.open.clear();
        }
        if self.open.is_empty() || self.bytes > OPEN_BYTES {
            self.open.clear();
            self.bytes = 0;
        }
        let mut rest = record.data.as_slice();
        for _ in 0..record.operations {
            let Some((head, behind)) = rest.split_at_checked(OperationHeader::LEN) else { return };
            let Ok(operation) = OperationHeader::decode(head) else { return };
            let Some((payload, behind)) = behind.split_at_checked(operation.len as usize) else {
                return;
            };
            rest = behind;
            if operation.client == LogClient::Transaction {
                self.operation(record.lsn, &operation, payload, &mut ended);
            }
        }
    }

    fn operation(
        &mut self,
        lsn: Lsn,
        operation: &OperationHeader,
        payload: &[u8],
        ended: &mut impl FnMut(Lsn, &[Vec<u8>]),
    ) {
        let number = operation.transaction;
        if operation.flags.contains(OperationFlags::START) {
            self.open.insert(number, Open { lsn, has_header: false, regions: Vec::new() });
            return;
        }
        if operation.flags.contains(OperationFlags::COMMIT) {
            if let Some(open) = self.open.remove(&number) {
                ended(open.lsn, &open.regions);
            }
            return;
        }
        let Some(open) = self.open.get_mut(&number) else { return };
        self.bytes += payload.len();
        if operation.flags.contains(OperationFlags::WAS_CONTINUED) {
            match open.regions.last_mut() {
                Some(last) => last.extend_from_slice(payload),
                None => open.regions.push(payload.to_vec()),
            }
        } else if !payload.is_empty() {
            open.regions.push(payload.to_vec());
        }
        // The header is the first region, and may be cut as any other.
        if !open.has_header && open.regions.len() > 1 {
            let header = open.regions.remove(0);
            if TransactionHeader::decode(&header).is_err() {
                self.open.remove(&number);
                return;
            }
            open.has_header = true;
        }
    }
}
