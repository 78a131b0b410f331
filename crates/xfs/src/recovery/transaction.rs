//! Transactions, put together from the operations of the records
//! (docs/format/journal/operations.md).

use crate::error::Error;
use crate::format::{LogItemKind, OperationFlags as Flags, OperationHeader, TransactionHeader};
use crate::log::Record;
use crate::units::Lsn;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// A transaction whose end was not reached yet, or just was.
#[derive(Debug)]
pub(super) struct LoggedTransaction {
    /// Position of the record in which it starts: what its changes are stamped with.
    pub(super) lsn: Lsn,
    header: Vec<u8>,
    bytes: Vec<u8>,
    regions: Vec<Range<usize>>,
}

/// An item of a transaction.
#[derive(Debug)]
pub(super) struct LogItem<'t> {
    pub(super) kind: LogItemKind,
    pub(super) regions: SmallVec<[&'t [u8]; 4]>,
}

/// The transactions that are open while the records pass by.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    open: FxHashMap<u32, LoggedTransaction>,
}

impl Assembly {
    /// Takes a record apart and hands every transaction that it commits to `commit`.
    pub(super) fn add(
        &mut self,
        record: &Record<'_>,
        mut commit: impl FnMut(&LoggedTransaction) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let header = &record.at.header;
        let damaged = |what: String| Error::Journal { lsn: header.lsn, what };
        let (mut data, mut left) = (record.data, header.operations);
        while left > 0 && data.len() >= OperationHeader::LEN {
            let number = header.operations - left;
            let in_operation = |what: String| damaged(format!("operation {number}: {what}"));
            let operation =
                OperationHeader::decode(data).map_err(|defect| in_operation(defect.to_string()))?;
            let rest = &data[OperationHeader::LEN..];
            let Some((payload, rest)) = rest.split_at_checked(operation.len as usize) else {
                return Err(in_operation(format!("oh_len {} ends behind it", operation.len)));
            };
            let done = self.operation(&operation, payload, header.lsn).map_err(in_operation)?;
            if let Some(transaction) = done {
                commit(&transaction)?;
            }
            (data, left) = (rest, left - 1);
        }
        Ok(())
    }

    /// Takes one operation; returns the transaction that it commits.
    fn operation(
        &mut self,
        operation: &OperationHeader,
        payload: &[u8],
        lsn: Lsn,
    ) -> Result<Option<LoggedTransaction>, String> {
        let mut flags = operation.flags - Flags::END;
        if flags.contains(Flags::WAS_CONTINUED) {
            flags -= Flags::CONTINUE;
        }
        let number = operation.transaction;
        let Some(transaction) = self.open.get_mut(&number) else {
            // A transaction without a start here was started, and is done with, before the tail.
            if flags.contains(Flags::START) {
                self.open.insert(number, LoggedTransaction::new(lsn));
            }
            return Ok(None);
        };
        match flags {
            Flags::COMMIT => return Ok(self.open.remove(&number)),
            Flags::UNMOUNT => drop(self.open.remove(&number)),
            Flags::WAS_CONTINUED => transaction.extend(payload)?,
            flags if (flags - Flags::CONTINUE).is_empty() => transaction.add(payload)?,
            flags => {
                return Err(format!("oh_flags {:#x} inside a transaction", flags.bits()));
            }
        }
        Ok(None)
    }
}

impl LoggedTransaction {
    fn new(lsn: Lsn) -> Self {
        Self { lsn, header: Vec::new(), bytes: Vec::new(), regions: Vec::new() }
    }

    /// A new region, of which this is all or the first part.
    fn add(&mut self, payload: &[u8]) -> Result<(), String> {
        if payload.is_empty() {
            return Ok(());
        }
        if self.header.len() < TransactionHeader::LEN {
            return self.extend_header(payload);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        self.regions.push(start..self.bytes.len());
        Ok(())
    }

    /// More of the last region.
    fn extend(&mut self, payload: &[u8]) -> Result<(), String> {
        let Some(last) = self.regions.last_mut() else {
            return self.extend_header(payload);
        };
        self.bytes.extend_from_slice(payload);
        last.end = self.bytes.len();
        Ok(())
    }

    fn extend_header(&mut self, payload: &[u8]) -> Result<(), String> {
        self.header.extend_from_slice(payload);
        if self.header.len() < TransactionHeader::LEN {
            return Ok(());
        }
        let header = TransactionHeader::decode(&self.header);
        header.map(drop).map_err(|defect| format!("transaction header: {defect}"))
    }

    /// The defect of this transaction, as an error.
    pub(super) fn damaged(&self, what: impl std::fmt::Display) -> Error {
        Error::Journal { lsn: self.lsn, what: what.to_string() }
    }

    /// The items, in the order in which they were logged.
    ///
    /// # Errors
    /// The regions do not add up to items, or an item is of an unknown kind.
    pub(super) fn items(&self) -> Result<Vec<LogItem<'_>>, Error> {
        if self.regions.is_empty() && !self.header.is_empty() {
            return Err(self.damaged("the transaction has no items"));
        }
        let mut items = Vec::new();
        let mut rest = &self.regions[..];
        while let Some(first) = rest.first() {
            let number = items.len();
            let in_item =
                |what: &dyn std::fmt::Display| self.damaged(format_args!("item {number}: {what}"));
            let (kind, count) = LogItemKind::decode(&self.bytes[first.clone()])
                .map_err(|defect| in_item(&defect))?;
            let Some((own, others)) = rest.split_at_checked(count) else {
                return Err(in_item(&format!("it has {} of its {count} regions", rest.len())));
            };
            let regions = own.iter().map(|region| &self.bytes[region.clone()]).collect();
            items.push(LogItem { kind, regions });
            rest = others;
        }
        Ok(items)
    }
}
