//! A part of a logical volume.

use super::text::{Entry, Section};

/// Most legs of a stripe or mirror that are believed.
const MAX_LEGS: usize = 128;

/// Extents of a logical volume that are laid out in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Extents of the logical volume.
    pub(super) extents: u64,
    pub(super) layout: Layout,
}

/// How they are laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Area after area in turn; one is linear.
    Striped {
        /// Sectors on one before the turn of the next.
        sectors: u64,
        areas: Vec<Area>,
    },
    /// The same on all of these volumes; the metadata of each, if it has some.
    Mirrored(Vec<(Option<String>, Area)>),
    /// In a way that is not read.
    Other(String),
}

/// Extents of a physical volume, or of a logical one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) of: String,
    pub(super) first: u64,
}

impl Segment {
    /// The segment of a section, which is to begin with an extent.
    pub(super) fn of(section: &Section, start: u64) -> Result<Self, String> {
        if section.number("start_extent")? != start {
            return Err(format!(
                "no segment begins with extent {start}, where the one before ends"
            ));
        }
        let extents = section.number("extent_count")?;
        if extents == 0 {
            return Err(format!("the segment at extent {start} is empty"));
        }
        let kind = section.text("type")?;
        let layout = match kind {
            "striped" => {
                let areas = areas(section.list("stripes"))?;
                let is_even = !areas.is_empty() && extents.is_multiple_of(areas.len() as u64);
                if !is_even || section.number("stripe_count") != Ok(areas.len() as u64) {
                    return Err(format!("{extents} extents on {} stripes", areas.len()));
                }
                let sectors = match areas.len() {
                    1 => 0,
                    _ => section.number("stripe_size")?,
                };
                Layout::Striped { sectors, areas }
            }
            "mirror" => {
                let areas = areas(section.list("mirrors"))?;
                Layout::Mirrored(areas.into_iter().map(|area| (None, area)).collect())
            }
            "raid1" => Layout::Mirrored(legs(section.list("raids"))?),
            other => Layout::Other(other.to_owned()),
        };
        match layout {
            Layout::Mirrored(legs) if legs.is_empty() => Err("a mirror without legs".into()),
            layout => Ok(Self { extents, layout }),
        }
    }

    /// The areas that have its data, and the extents of each.
    pub(super) fn areas(&self) -> (Vec<&Area>, u64) {
        match &self.layout {
            // As many as are shared out evenly.
            Layout::Striped { areas, .. } => {
                (areas.iter().collect(), self.extents / areas.len() as u64)
            }
            Layout::Mirrored(legs) => (legs.iter().map(|(_, area)| area).collect(), self.extents),
            Layout::Other(_) => (Vec::new(), 0),
        }
    }

    /// Volumes with the metadata of its legs.
    pub(super) fn metadata(&self) -> impl Iterator<Item = &str> {
        let legs = match &self.layout {
            Layout::Mirrored(legs) => legs.as_slice(),
            _ => &[],
        };
        legs.iter().filter_map(|(metadata, _)| metadata.as_deref())
    }
}

/// Names with the extents at which they begin.
fn areas(list: &[Entry]) -> Result<Vec<Area>, String> {
    if list.len() > 2 * MAX_LEGS {
        return Err(format!("a segment on more than {MAX_LEGS} areas"));
    }
    let area = |pair: &[Entry]| match pair {
        [Entry::Text(of), Entry::Number(first)] => Ok(Area { of: of.clone(), first: *first }),
        _ => Err("an area that is no name with an extent".to_owned()),
    };
    list.chunks(2).map(area).collect()
}

/// Names of metadata and data in turn.
fn legs(list: &[Entry]) -> Result<Vec<(Option<String>, Area)>, String> {
    if list.len() > 2 * MAX_LEGS {
        return Err(format!("a mirror of more than {MAX_LEGS} legs"));
    }
    let leg = |pair: &[Entry]| match pair {
        [Entry::Text(metadata), Entry::Text(data)] => {
            Ok((Some(metadata.clone()), Area { of: data.clone(), first: 0 }))
        }
        _ => Err("a leg that is no name of metadata with one of data".to_owned()),
    };
    list.chunks(2).map(leg).collect()
}
