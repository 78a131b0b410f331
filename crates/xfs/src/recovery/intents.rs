//! Intents that were met and not seen done.

use crate::format::{Intent, IntentDone, LogItemKind};
use crate::units::Lsn;
use rustc_hash::FxHashMap;

/// Unfinished intents, in the order of their appearance.
#[derive(Debug, Default)]
pub(super) struct PendingIntents {
    intents: Vec<Option<(Intent, Lsn)>>,
    /// Number of an intent in the list. Numbers of intents come back once they are done.
    places: FxHashMap<(LogItemKind, u64), usize>,
}

impl PendingIntents {
    pub(super) fn add(&mut self, intent: Intent, lsn: Lsn) {
        self.places.insert((intent.kind(), intent.id), self.intents.len());
        self.intents.push(Some((intent, lsn)));
    }

    /// Drops the intent that is done. One that is not known is older than the journal's tail.
    pub(super) fn finish(&mut self, done: &IntentDone) {
        if let Some(place) = self.places.remove(&(done.intent, done.id)) {
            self.intents[place] = None;
        }
    }

    /// Unfinished intents, with the position of the transaction that logged them, oldest first.
    pub(super) fn into_unfinished(self) -> Vec<(Intent, Lsn)> {
        self.intents.into_iter().flatten().collect()
    }
}
