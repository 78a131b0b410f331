//! What threads do and are told, in one order with what reaches the device.

use crate::xfs::serve_crash::model::{Past, Reached};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use undercroft_block::testing::recorder::{Event, Recorder};

/// What a ticket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covers {
    /// The operations committed.
    Journal,
    /// The data of this file of this thread as well.
    File { thread: usize, file: usize },
    /// All data as well.
    All,
}

/// Something a thread does, or is told.
#[derive(Clone, Copy, Debug)]
pub enum Note {
    Begun {
        thread: usize,
    },
    Done {
        thread: usize,
    },
    /// A ticket is about to be drawn.
    Drawn {
        ticket: usize,
        covers: Covers,
    },
    Answered {
        ticket: usize,
    },
}

/// The notes of a history; the recording has their places.
pub struct Notes {
    recorder: Arc<Recorder>,
    list: Mutex<Vec<Note>>,
}

impl Notes {
    pub fn new(recorder: &Arc<Recorder>) -> Arc<Self> {
        Arc::new(Self { recorder: Arc::clone(recorder), list: Mutex::default() })
    }

    pub fn add(&self, note: Note) {
        let mut list = self.list.lock();
        self.recorder.mark(&list.len().to_string());
        list.push(note);
    }

    /// Notes that a ticket is about to be drawn; returns its number.
    pub fn draw(&self, covers: Covers) -> usize {
        let mut list = self.list.lock();
        let ticket = list.len();
        self.recorder.mark(&ticket.to_string());
        list.push(Note::Drawn { ticket, covers });
        ticket
    }

    pub fn take(&self) -> Vec<Note> {
        std::mem::take(&mut *self.list.lock())
    }
}

/// How far all threads are at a place of the recording.
pub struct Progress {
    notes: Vec<Note>,
    done: Vec<usize>,
    reached: Vec<Reached>,
    /// Tickets that were drawn, and the operations done by then.
    tickets: BTreeMap<usize, (Covers, Vec<usize>)>,
    /// Tickets that were answered.
    pub answered: usize,
}

impl Progress {
    pub fn new(notes: Vec<Note>, pasts: &[Past]) -> Self {
        let nothing =
            |past: &Past| Reached { begun: 0, committed: 0, written: vec![0; past.files.len()] };
        let (done, reached) = (vec![0; pasts.len()], pasts.iter().map(nothing).collect());
        Self { notes, done, reached, tickets: BTreeMap::new(), answered: 0 }
    }

    /// How far each thread is.
    pub fn reached(&self) -> &[Reached] {
        &self.reached
    }

    /// How many threads are in an operation.
    pub fn busy(&self) -> usize {
        self.reached.iter().zip(&self.done).filter(|(reached, done)| reached.begun > **done).count()
    }

    /// How many tickets were drawn and not answered.
    pub fn waiting(&self) -> usize {
        self.tickets.len()
    }

    /// Goes on behind an event.
    pub fn pass(&mut self, event: &Event) {
        let Event::Mark(text) = event else { return };
        match self.notes[text.parse::<usize>().unwrap()] {
            Note::Begun { thread } => self.reached[thread].begun += 1,
            Note::Done { thread } => self.done[thread] += 1,
            Note::Drawn { ticket, covers } => {
                self.tickets.insert(ticket, (covers, self.done.clone()));
            }
            Note::Answered { ticket } => self.answer(ticket),
        }
    }

    fn answer(&mut self, ticket: usize) {
        self.answered += 1;
        let (covers, done) = self.tickets.remove(&ticket).expect("it was drawn");
        for (thread, (reached, done)) in self.reached.iter_mut().zip(done).enumerate() {
            reached.committed = reached.committed.max(done);
            for (file, written) in reached.written.iter_mut().enumerate() {
                let own = Covers::File { thread, file };
                if covers == own || covers == Covers::All {
                    *written = (*written).max(done);
                }
            }
        }
    }
}
