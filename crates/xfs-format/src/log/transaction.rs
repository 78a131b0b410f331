//! Transactions, put together from the operations of the records
//! (docs/format/journal/operations.md).

use super::item::LogItemKind;
use super::operation::{OperationFlags as Flags, OperationHeader, TransactionHeader};
use super::record::LogRecordHeader;
use crate::units::Lsn;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt::Display;
use std::ops::Range;
use thiserror::Error;

/// A record or a transaction of the journal is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the journal is damaged at cycle {}, block {}: {what}", lsn.cycle(), lsn.block())]
pub struct JournalDefect {
    /// Position of the record, or of that in which the transaction starts.
    pub lsn: Lsn,
    /// The field and its defect.
    pub what: String,
}

/// A transaction whose end was not reached yet, or just was.
#[derive(Debug)]
pub struct LoggedTransaction {
    /// Position of the record in which it starts: what its changes are stamped with.
    pub lsn: Lsn,
    header: Vec<u8>,
    bytes: Vec<u8>,
    regions: Vec<Range<usize>>,
}

/// An item of a transaction.
#[derive(Debug)]
pub struct LogItem<'t> {
    /// Its kind.
    pub kind: LogItemKind,
    /// Its regions: one at least.
    pub regions: SmallVec<[&'t [u8]; 4]>,
}

/// The transactions that are open while the records pass by.
#[derive(Debug, Default)]
pub struct Assembly {
    open: HashMap<u32, LoggedTransaction>,
}

impl Assembly {
    /// Takes the data of a record apart and hands every transaction that it commits to `commit`.
    ///
    /// # Errors
    /// An operation that cannot be, or an error of `commit`.
    pub fn add<E: From<JournalDefect>>(
        &mut self,
        header: &LogRecordHeader,
        mut data: &[u8],
        mut commit: impl FnMut(&LoggedTransaction) -> Result<(), E>,
    ) -> Result<(), E> {
        for number in 0..header.operations {
            let defect = |what: String| {
                E::from(JournalDefect {
                    lsn: header.lsn,
                    what: format!("operation {number}: {what}"),
                })
            };
            let Some((head, rest)) = data.split_at_checked(OperationHeader::LEN) else { break };
            let operation =
                OperationHeader::decode(head).map_err(|error| defect(error.to_string()))?;
            let Some((payload, rest)) = rest.split_at_checked(operation.len as usize) else {
                return Err(defect(format!("oh_len {} ends behind it", operation.len)));
            };
            if let Some(done) = self.operation(&operation, payload, header.lsn).map_err(defect)? {
                commit(&done)?;
            }
            data = rest;
        }
        Ok(())
    }

    /// Bytes of the transactions that are open.
    #[must_use]
    pub fn held(&self) -> usize {
        self.open.values().map(|open| open.bytes.len()).sum()
    }

    /// Forgets the transactions that are open.
    pub fn clear(&mut self) {
        self.open.clear();
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

    /// The defect of this transaction.
    pub fn damaged(&self, what: impl Display) -> JournalDefect {
        JournalDefect { lsn: self.lsn, what: what.to_string() }
    }

    /// The items, in the order in which they were logged; none behind a defect. Each has one region at
    /// least.
    ///
    /// # Errors
    /// The regions do not add up to items, or an item is of an unknown kind.
    pub fn items(&self) -> impl Iterator<Item = Result<LogItem<'_>, JournalDefect>> {
        let mut rest = &self.regions[..];
        let mut number = 0;
        let is_empty = self.regions.is_empty() && !self.header.is_empty();
        let empty = is_empty.then(|| Err(self.damaged("the transaction has no items")));
        empty.into_iter().chain(std::iter::from_fn(move || {
            let first = rest.first()?;
            let item = match self.item(first, rest) {
                Ok((item, behind)) => {
                    rest = behind;
                    Ok(item)
                }
                Err(what) => {
                    rest = &[];
                    Err(self.damaged(format_args!("item {number}: {what}")))
                }
            };
            number += 1;
            Some(item)
        }))
    }

    /// The item whose regions come first, and the regions behind them.
    fn item<'t>(
        &'t self,
        first: &Range<usize>,
        regions: &'t [Range<usize>],
    ) -> Result<(LogItem<'t>, &'t [Range<usize>]), String> {
        let (kind, count) =
            LogItemKind::decode(&self.bytes[first.clone()]).map_err(|defect| defect.to_string())?;
        let Some((own, behind)) = regions.split_at_checked(count) else {
            return Err(format!("it has {} of its {count} regions", regions.len()));
        };
        let regions = own.iter().map(|region| &self.bytes[region.clone()]).collect();
        Ok((LogItem { kind, regions }, behind))
    }
}
