//! The B+tree engine: one for all trees of the format.
//!
//! - [`BtreeKind`]: what differs between trees; one type per tree ([`Bnobt`], [`Cntbt`],
//!   [`Inobt`], [`Finobt`], [`Rmapbt`], [`Refcountbt`], [`Bmbt`]).
//! - [`ReadTree`], [`WriteTree`]: where a tree lives; implemented by groups and forks.
//! - [`Cursor`]: lookup, steps, range queries, update, insert, delete.
//!
//! Every block is checked when it comes in, and every step checks that keys ascend, so a corrupt
//! tree ends in a [`TreeCorruption`], never in a panic or an endless walk.

mod bmbt;
mod bnobt;
mod chunk_trees;
mod cntbt;
mod cursor;
mod delete;
mod entries;
mod find;
mod frame;
mod insert;
mod keys;
mod kind;
mod lookup;
mod node;
mod place;
mod range;
mod refcountbt;
mod relocate;
mod rmapbt;
mod root;
mod shift;
mod split;
mod step;
mod store;
mod update;
mod verify;

#[cfg(test)]
mod tests;

pub use bmbt::Bmbt;
pub use bnobt::{BlockKey, Bnobt};
pub use chunk_trees::{Finobt, Inobt};
pub use cntbt::{Cntbt, SizeKey};
pub use cursor::Cursor;
pub use kind::{BlockPointer, BtreeKind};
pub use lookup::Lookup;
pub use place::overwrite_at;
pub use refcountbt::Refcountbt;
pub use rmapbt::Rmapbt;
pub use store::{NewRoot, ReadTree, Root, WriteTree};
