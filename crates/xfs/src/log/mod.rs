//! The journal (docs/format/journal/README.md).
//!
//! [`state()`] tells the content of a journal, from its two ends (`head`, `ends`) and the records
//! between them (`area`, `record`). On a volume that is open for change, transactions commit into
//! the open checkpoint (`checkpoint`), which a writer makes durable (`writing`): items straight from
//! buffers (`items`), packed in records (`records`). Buffers that are durable in the journal are
//! written to their places later (`dirty`). A caller that waits for durability has a ticket
//! (`ticket`). The share of the journal that a transaction may take follows from its kind
//! (`reservation`).
//!
//! The journal (`journal`) holds the state of its thread (`worker`) and of its writer (`writer`); what
//! both do on it is in `thread` and `writing`.

mod answer;
mod answers;
mod area;
mod buffer_key;
mod checkpoint;
mod dirty;
mod ends;
mod head;
mod items;
mod journal;
mod record;
mod records;
#[cfg(test)]
mod records_tests;
mod report;
mod reservation;
mod shape;
mod state;
mod thread;
mod ticket;
mod worker;
mod writer;
mod writing;

pub(crate) use answer::Refusal;
pub(crate) use area::LogArea;
pub(crate) use checkpoint::LogRecordHints;
pub(crate) use ends::LogEnds;
pub use ends::{LogState, Torn};
pub(crate) use items::removals;
pub(crate) use journal::{Journal, JournalParts, Permit, WriteBack};
pub(crate) use record::{Defect, Records, Strictness};
pub(crate) use records::{RecordStream, Seal};
pub use report::RecoveryReport;
pub(crate) use reservation::{LogSpace, Reservation, Work, large_attribute, reservations};
pub(crate) use shape::LogShape;
pub(crate) use state::ends;
pub use ticket::SyncTicket;
pub(crate) use ticket::UnsequencedTicket;
pub(crate) use writer::JournalStart;
