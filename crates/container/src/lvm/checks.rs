//! What must hold of the metadata of a group before a device is made of it.

use super::group::Group;
use std::collections::BTreeMap;
use undercroft_block::Sector;

/// Logical volumes that may be parts of each other: a mirror of stripes in a move.
const MAX_DEPTH: usize = 6;

/// Extents from the first to the one behind the last, and whose they are.
type Taken<'g> = (u64, u64, &'g str);

/// Says what does not hold.
pub(super) fn check(group: &Group) -> Result<(), String> {
    sizes(group)?;
    let mut taken = BTreeMap::<&str, Vec<Taken<'_>>>::new();
    for (name, logical) in &group.logical {
        for segment in &logical.segments {
            let (areas, extents) = segment.areas();
            for area in areas {
                let end = area.first.checked_add(extents);
                let has = match (group.physical.get(&area.of), group.logical.get(&area.of)) {
                    (Some(place), _) => place.extents,
                    (None, Some(other)) => other.extents(),
                    (None, None) => {
                        return Err(format!("{name} is on {}, which is not there", area.of));
                    }
                };
                let Some(end) = end.filter(|end| *end <= has) else {
                    return Err(format!(
                        "{name} has {extents} extents from {} on of {}, which has {has}",
                        area.first, area.of
                    ));
                };
                taken.entry(&area.of).or_default().push((area.first, end, name));
            }
        }
    }
    taken.iter_mut().try_for_each(|(of, taken)| distinct(of, taken))?;
    let mut known = BTreeMap::new();
    group.logical.keys().try_for_each(|name| height(group, name, 0, &mut known).map(drop))
}

/// Extents are on devices that can be.
fn sizes(group: &Group) -> Result<(), String> {
    let sectors = group.extent_sectors;
    if sectors == 0 || !sectors.is_power_of_two() && !sectors.is_multiple_of(256) {
        return Err(format!("extents of {sectors} sectors"));
    }
    let fits = |extents: u64, start: u64| {
        let sectors = extents.checked_mul(group.extent_sectors);
        sectors.and_then(|all| all.checked_add(start)).is_some_and(|end| end <= Sector::MAX.0)
    };
    for (name, place) in &group.physical {
        if !fits(place.extents, place.start) {
            return Err(format!("{name} has {} extents, more than a device can", place.extents));
        }
    }
    for (name, logical) in &group.logical {
        if !fits(logical.extents(), 0) {
            return Err(format!(
                "{name} has {} extents, more than a device can",
                logical.extents()
            ));
        }
    }
    Ok(())
}

/// No two have the same extent.
fn distinct(of: &str, taken: &mut [Taken<'_>]) -> Result<(), String> {
    taken.sort_unstable();
    let shared = taken.windows(2).find(|pair| pair[1].0 < pair[0].1);
    match shared {
        Some([(.., one), (first, _, other)]) => {
            Err(format!("extent {first} of {of} is one of {one} and one of {other}"))
        }
        _ => Ok(()),
    }
}

/// How many volumes are below a volume, which is not part of itself. `known` has those that were looked at.
fn height<'g>(
    group: &'g Group,
    name: &'g str,
    depth: usize,
    known: &mut BTreeMap<&'g str, usize>,
) -> Result<usize, String> {
    let Some(logical) = group.logical.get(name) else { return Ok(0) };
    if let Some(height) = known.get(name) {
        return Ok(*height);
    }
    let mut below = 0;
    if depth <= MAX_DEPTH {
        for part in logical.parts() {
            below = below.max(height(group, part, depth + 1, known)?);
        }
    }
    let height = below + 1;
    if depth + height > MAX_DEPTH {
        return Err(format!("{name} is part of itself, or of volumes more than {MAX_DEPTH} deep"));
    }
    known.insert(name, height);
    Ok(height)
}
