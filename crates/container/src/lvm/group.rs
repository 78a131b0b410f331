//! A volume group as its metadata describes it.

use super::segment::Segment;
use super::text::{self, Section};
use std::collections::BTreeMap;

/// Segments of a logical volume that are read.
const MAX_SEGMENTS: u64 = 4096;

/// A volume group, of whose volumes the segments follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) id: String,
    /// Counts the changes of the metadata.
    pub(super) sequence: u64,
    /// Sectors in an extent.
    pub(super) extent_sectors: u64,
    pub(super) is_writable: bool,
    /// By the names that segments use.
    pub(super) physical: BTreeMap<String, Place>,
    pub(super) logical: BTreeMap<String, Logical>,
}

/// A physical volume in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its identifier, without hyphens.
    pub(super) id: String,
    /// Sector of its first extent.
    pub(super) start: u64,
    pub(super) extents: u64,
    /// It was not there when the metadata was written, so that it may be out of date.
    pub(super) was_missing: bool,
}

/// A logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Logical {
    pub(super) id: String,
    /// Others are parts of these.
    pub(super) is_visible: bool,
    pub(super) is_writable: bool,
    pub(super) role: Role,
    pub(super) segments: Vec<Segment>,
}

/// What snapshots make of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Usual,
    /// Its old contents are kept by others when it changes.
    Origin,
    /// It has the old contents of another.
    SnapshotOf(String),
}

impl Group {
    /// The group that a text describes.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parsed = text::parse(text)?;
        if parsed.text("contents")? != "Text Format Volume Group" || parsed.number("version")? != 1
        {
            return Err("it is no description of a volume group in version 1".into());
        }
        let mut sections = parsed.sections();
        let (name, section) = sections.next().ok_or("it describes no volume group")?;
        if sections.next().is_some() {
            return Err("it describes several volume groups".into());
        }
        let each = |name| section.section(name).into_iter().flat_map(Section::sections);
        let physical = each("physical_volumes").map(|(name, section)| {
            let place = Place::of(section).map_err(|fault| format!("{name}: {fault}"))?;
            Ok((name.to_owned(), place))
        });
        let logical = each("logical_volumes").map(|(name, section)| {
            let logical = Logical::of(section).map_err(|fault| format!("{name}: {fault}"))?;
            Ok((name.to_owned(), logical))
        });
        let mut group = Self {
            name: name.to_owned(),
            id: identifier(section)?,
            sequence: section.number("seqno")?,
            extent_sectors: section.number("extent_size")?,
            is_writable: section.says("status", "WRITE"),
            physical: physical.collect::<Result<_, String>>()?,
            logical: logical.collect::<Result<_, String>>()?,
        };
        for (_, section) in each("logical_volumes") {
            group.note_snapshot(section);
        }
        Ok(group)
    }

    /// A hidden volume says what is a snapshot of what.
    fn note_snapshot(&mut self, section: &Section) {
        for (_, segment) in section.sections() {
            if segment.text("type") != Ok("snapshot") {
                continue;
            }
            let Ok(origin) = segment.text("origin") else { continue };
            if let Some(volume) = self.logical.get_mut(origin) {
                volume.role = Role::Origin;
            }
            for name in ["cow_store", "merging_store"] {
                let store = segment.text(name).ok().and_then(|name| self.logical.get_mut(name));
                if let Some(volume) = store {
                    volume.role = Role::SnapshotOf(origin.to_owned());
                }
            }
        }
    }
}

impl Place {
    fn of(section: &Section) -> Result<Self, String> {
        Ok(Self {
            id: identifier(section)?,
            start: section.number("pe_start")?,
            extents: section.number("pe_count")?,
            was_missing: section.says("flags", "MISSING"),
        })
    }
}

impl Logical {
    fn of(section: &Section) -> Result<Self, String> {
        let count = section.number("segment_count")?;
        if count > MAX_SEGMENTS {
            return Err(format!("{count} segments; read are at most {MAX_SEGMENTS}"));
        }
        let mut start = 0_u64;
        let mut segments = Vec::new();
        for number in 1..=count {
            let name = format!("segment{number}");
            let segment = section.section(&name).ok_or_else(|| format!("there is no {name}"))?;
            let segment = Segment::of(segment, start)?;
            start = start.checked_add(segment.extents).ok_or("its extents have no end")?;
            segments.push(segment);
        }
        if segments.is_empty() {
            return Err("it has no segments".into());
        }
        Ok(Self {
            id: identifier(section)?,
            is_visible: section.says("status", "VISIBLE"),
            is_writable: section.says("status", "WRITE"),
            role: Role::Usual,
            segments,
        })
    }

    /// The volumes that its segments are on, and those with their metadata.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(|segment| {
            let areas = segment.areas().0.into_iter().map(|area| area.of.as_str());
            areas.chain(segment.metadata())
        })
    }

    /// Extents that it has; as they are added up, they have an end.
    pub(super) fn extents(&self) -> u64 {
        self.segments.iter().map(|segment| segment.extents).sum()
    }
}

/// An identifier without the hyphens that are put in it for people.
fn identifier(section: &Section) -> Result<String, String> {
    Ok(section.text("id")?.replace('-', ""))
}
