//! The journal (journal reference).
//!
//! [`state()`] says what a journal holds. On a volume that is open for change, transactions commit
//! into the open checkpoint (`checkpoint`), which a writer makes durable (`writer`): items straight
//! from buffers (`items`), packed in records (`records`). What is durable in the journal goes to its
//! place later (`dirty`). Who waits for durability has a ticket (`ticket`). What a crash left in a
//! journal becomes part of the volume in [`recovery`].

mod answers;
mod checkpoint;
mod dirty;
mod items;
mod journal;
mod records;
#[cfg(test)]
mod records_tests;
pub mod recovery;
mod shape;
mod state;
mod ticket;
mod worker;
mod writer;

pub(crate) use checkpoint::Notes;
pub(crate) use dirty::InPlace;
pub(crate) use journal::{Journal, JournalParts, JournalStart, Permit, WriteBack};
pub(crate) use recovery::LogEnds;
pub use recovery::LogState;
pub(crate) use shape::LogShape;
pub(crate) use state::ends;
pub use state::state;
pub use ticket::SyncTicket;
pub(crate) use ticket::{Promise, Refusal};
