//! Tables in the shape of the sources, made of records and of nothing else.

use std::io::{self, Write};

use crate::outcome::Outcome;
use crate::record::{Record, Session, sections};
use crate::report::blocks::Blocks;
use crate::{affinity, age, alloc, calibration, fsync, iops, meta, mount, tags, unplug};

/// Writes tables for `records`, one for each experiment of each session, in the order in which
/// they stand.
///
/// # Errors
/// The writer's.
pub fn write_tables(records: &[Record], out: &mut dyn Write) -> io::Result<()> {
    let mut blocks = Blocks::default();
    let mut session = None;
    for section in sections(records) {
        let first = &section[0];
        if session.replace(&first.session) != Some(&first.session) {
            add_session(&first.session, &mut blocks);
        }
        blocks.gap();
        blocks.line(first.outcome.title());
        add_section(section, &mut blocks);
    }
    blocks.write_text(out)
}

fn add_session(session: &Session, blocks: &mut Blocks) {
    blocks.line(session.machine.summary());
    let Session { version, command, seed, .. } = session;
    blocks.line(format!("undercroft {version}: {command} (seed {seed})"));
}

/// Adds the tables of one experiment in one session.
pub(crate) fn add_section(section: &[Record], blocks: &mut Blocks) {
    match section[0].outcome {
        Outcome::TagsDepth(_) | Outcome::TagsShared(_) => {
            let outcomes = select(section, Outcome::tags);
            tags::table::write_by_depth(&outcomes, blocks);
            blocks.gap();
            tags::table::write_details(&outcomes, blocks);
        }
        Outcome::TagsHerd(_) | Outcome::TagsFairness(_) | Outcome::TagsVariability(_) => {
            tags::table::write_details(&select(section, Outcome::tags), blocks);
        }
        Outcome::Iops(_) => iops::table::write(&select(section, Outcome::iops), blocks),
        Outcome::Affinity(_) => affinity::table::write(&select(section, Outcome::affinity), blocks),
        Outcome::Fsync(_) => fsync::table::write(&select(section, Outcome::fsync), blocks),
        Outcome::Meta(_) => meta::table::write(&select(section, Outcome::meta), blocks),
        Outcome::Mount(_) => mount::table::write(&select(section, Outcome::mount), blocks),
        Outcome::Unplug(_) => unplug::table::write(&select(section, Outcome::unplug), blocks),
        Outcome::Age(_) => age::table::write(&select(section, Outcome::age), blocks),
        Outcome::Alloc(_) => alloc::table::write(&select(section, Outcome::alloc), blocks),
        Outcome::AllocSearch(_) | Outcome::AllocGrowth(_) => {
            alloc::table::write_searches(&select(section, Outcome::search), blocks);
        }
        Outcome::Calibration(_) => {
            calibration::table::write(&select(section, Outcome::calibration), blocks);
        }
    }
}

/// The outcomes of a section, all of one kind.
fn select<T>(section: &[Record], of: fn(&Outcome) -> Option<&T>) -> Vec<&T> {
    section.iter().filter_map(|record| of(&record.outcome)).collect()
}
