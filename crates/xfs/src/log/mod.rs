//! The journal (journal reference).
//!
//! [`state()`] says what a journal holds. On a volume that is open for change, transactions commit
//! into the open checkpoint (`checkpoint`), which a writer makes durable (`writer`): items straight
//! from buffers (`items`), packed in records (`records`). What is durable in the journal goes to its
//! place later (`dirty`). Who waits for durability has a ticket (`ticket`).

mod checkpoint;
mod dirty;
mod items;
mod journal;
mod records;
mod shape;
mod state;
mod ticket;
mod worker;
mod writer;

pub(crate) use checkpoint::Notes;
pub(crate) use dirty::InPlace;
pub(crate) use journal::{Journal, JournalParts, Permit, WriteBack};
pub(crate) use shape::{LogPosition, LogShape};
pub(crate) use state::{LogEnd, end};
pub use state::{LogState, state};
pub use ticket::SyncTicket;
