//! Reports: tables in the shape of the sources, made of records and of nothing else.

mod affinity;
mod alloc;
mod fsync;
mod iops;
mod meta;
mod number;
mod tags;
mod unplug;

use std::io::{self, Write};

use crate::outcome::Outcome;
use crate::record::{Record, Session, sections};

/// Writes tables for `records`, one for each experiment of each session, in the order in which
/// they stand.
///
/// # Errors
/// The writer's.
pub fn write_tables(records: &[Record], out: &mut dyn Write) -> io::Result<()> {
    let mut session = None;
    for section in sections(records) {
        let first = &section[0];
        if session.replace(&first.session) != Some(&first.session) {
            write_session(&first.session, out)?;
        }
        writeln!(out)?;
        write_section(section, out)?;
    }
    Ok(())
}

fn write_session(session: &Session, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", session.machine.summary())?;
    writeln!(out, "undercroft {}: {} (seed {})", session.version, session.command, session.seed)
}

fn write_section(section: &[Record], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", section[0].outcome.title())?;
    match section[0].outcome {
        Outcome::TagsDepth(_) | Outcome::TagsShared(_) => {
            let outcomes = select(section, Outcome::tags);
            tags::write_by_depth(&outcomes, out)?;
            writeln!(out)?;
            tags::write_details(&outcomes, out)
        }
        Outcome::TagsHerd(_) | Outcome::TagsFairness(_) | Outcome::TagsVariability(_) => {
            tags::write_details(&select(section, Outcome::tags), out)
        }
        Outcome::Iops(_) => iops::write(&select(section, Outcome::iops), out),
        Outcome::Affinity(_) => affinity::write(&select(section, Outcome::affinity), out),
        Outcome::Fsync(_) => fsync::write(&select(section, Outcome::fsync), out),
        Outcome::Meta(_) => meta::write(&select(section, Outcome::meta), out),
        Outcome::Unplug(_) => unplug::write(&select(section, Outcome::unplug), out),
        Outcome::Age(_) => alloc::write_ages(&select(section, Outcome::age), out),
        Outcome::Alloc(_) => alloc::write(&select(section, Outcome::alloc), out),
        Outcome::AllocSearch(_) | Outcome::AllocGrowth(_) => {
            alloc::write_searches(&select(section, Outcome::search), out)
        }
    }
}

/// The outcomes of a section, all of one kind.
fn select<T>(section: &[Record], of: fn(&Outcome) -> Option<&T>) -> Vec<&T> {
    section.iter().filter_map(|record| of(&record.outcome)).collect()
}
