//! Number and size of the allocation groups (docs/format/geometry.md#groups).

use super::error::MkfsError;
use super::options::MkfsOptions;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
/// Least size of a group, also of the last one.
pub(super) const MIN_AG_BYTES: u64 = 16 * MIB;
/// `mkfs.xfs` stays one byte below the limit of the format.
const MAX_AG_BYTES: u64 = TIB - 1;

/// The groups of a new volume, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    /// Blocks of the volume; without those of a last group that would be too short.
    pub(super) blocks: u64,
    pub(super) ag_blocks: u32,
    pub(super) ag_count: u32,
}

/// Data stripe unit and width in blocks; zero if none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stripe {
    pub(super) unit: u32,
    pub(super) width: u32,
}

/// Chooses the groups. `limit` bounds the number of groups that the default would make.
pub(super) fn choose(
    options: &MkfsOptions,
    block_log: u32,
    stripe: Stripe,
    limit: Option<u32>,
) -> Result<Groups, MkfsError> {
    // The length of a group follows from the size that there will be, the number from that there is.
    let bytes = options.size.max(options.grown_size.unwrap_or(0));
    let blocks = bytes >> block_log;
    let (min, max) = (MIN_AG_BYTES >> block_log, MAX_AG_BYTES >> block_log);
    let mut spread = false;
    let size = match (options.ag_count, options.ag_size) {
        (Some(count), Some(_)) => {
            let rule = "it excludes a group size; give only one of them";
            return Err(MkfsError::Conflict {
                option: "number of groups",
                value: count.into(),
                rule,
            });
        }
        (Some(count), None) => {
            let fewest = blocks.div_ceil(max).max(1);
            let most = (blocks / min).max(1);
            range("number of groups", count.into(), fewest, most, "groups")?;
            blocks.div_ceil(u64::from(count))
        }
        (None, Some(wanted)) => {
            let most = MAX_AG_BYTES.min(bytes);
            range("group size", wanted, MIN_AG_BYTES, most, "bytes")?;
            let block_size = 1 << block_log;
            if wanted % block_size != 0 {
                return Err(MkfsError::Multiple {
                    option: "group size",
                    value: wanted,
                    unit: "block size",
                    size: block_size,
                });
            }
            wanted >> block_log
        }
        (None, None) => {
            spread = true;
            default_size(blocks, block_log, stripe, limit)
        }
    };
    let mut size = align(size, stripe, max);
    if spread && size < blocks {
        size = spread_headers(size, stripe, min);
    }
    let mut used = options.size >> block_log;
    let mut count = used.div_ceil(size);
    if count > 1 && used - (count - 1) * size < min {
        count -= 1;
        used = count * size;
    }
    let fits = "a group has at most 1 TiB and their number 32 bits";
    Ok(Groups {
        blocks: used,
        ag_blocks: u32::try_from(size).expect(fits),
        ag_count: u32::try_from(count).expect(fits),
    })
}

fn range(
    option: &'static str,
    value: u64,
    min: u64,
    max: u64,
    unit: &'static str,
) -> Result<(), MkfsError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let remedy = "leave it out or change the size";
    Err(MkfsError::Range { option, value, min, max, unit, remedy })
}

/// Size of a group when the caller says nothing.
fn default_size(blocks: u64, block_log: u32, stripe: Stripe, limit: Option<u32>) -> u64 {
    let (min, max) = (MIN_AG_BYTES >> block_log, MAX_AG_BYTES >> block_log);
    let bytes = blocks << block_log;
    let striped = stripe.unit != 0;
    let shift = match bytes {
        _ if bytes >= 32 * TIB || (!striped && bytes >= 4 * TIB) => return max,
        _ if !striped && bytes >= 128 * MIB => 2,
        _ if bytes > 512 * GIB => 5,
        _ if bytes > 8 * GIB => 4,
        _ if bytes >= 128 * MIB => 3,
        _ if bytes >= 64 * MIB => 2,
        _ if bytes >= 32 * MIB => 1,
        _ => 0,
    };
    let mut count = (1_u64 << shift).min(limit.map_or(u64::MAX, u64::from));
    let mut size = blocks.div_ceil(count);
    // Where rounding would cost the last group, one group less keeps the space.
    while count > 1 && blocks - (count - 1) * size < min {
        count -= 1;
        size = blocks.div_ceil(count);
    }
    size.min(max)
}

/// Rounds a group to stripe units.
fn align(size: u64, stripe: Stripe, max: u64) -> u64 {
    if stripe.unit == 0 {
        return size;
    }
    let unit = u64::from(stripe.unit);
    let up = size.next_multiple_of(unit);
    if up > max { size / unit * unit } else { up }
}

/// Keeps the headers of the groups on different disks: a whole number of stripe widths would put
/// them all on one.
fn spread_headers(size: u64, stripe: Stripe, min: u64) -> u64 {
    let (unit, width) = (u64::from(stripe.unit), u64::from(stripe.width));
    if unit == width || !size.is_multiple_of(width) {
        return size;
    }
    if size - unit >= min { size - unit } else { size + unit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn default(size: u64, stripe: Stripe) -> (u32, u32) {
        let groups = choose(&MkfsOptions::new(size, Uuid::nil()), 12, stripe, None).unwrap();
        (groups.ag_count, groups.ag_blocks)
    }

    #[test]
    fn defaults_match_the_reference() {
        let none = Stripe::default();
        assert_eq!(default(GIB, none), (4, 65_536));
        assert_eq!(default(100 * GIB, none), (4, 6_553_600));
        assert_eq!(default(3 * TIB, none), (4, 201_326_592));
        assert_eq!(default(4 * TIB, none), (4, 268_435_455));
        assert_eq!(default(5 * TIB, none), (5, 268_435_455));
        let striped = Stripe { unit: 16, width: 64 };
        assert_eq!(default(GIB, striped), (8, 32_752));
        assert_eq!(default(9 * GIB, striped), (16, 147_440));
        assert_eq!(default(513 * GIB, striped), (32, 4_202_480));
        assert_eq!(default(TIB, striped), (32, 8_388_592));
    }

    #[test]
    fn volumes_that_will_grow_have_the_groups_of_their_size_then() {
        let groups = |size, grown_size| {
            let options = MkfsOptions { grown_size, ..MkfsOptions::new(size, Uuid::nil()) };
            let Groups { blocks, ag_blocks, ag_count } =
                choose(&options, 12, Stripe::default(), None).unwrap();
            (blocks << 12, ag_blocks, ag_count)
        };
        assert_eq!(groups(300 * MIB, Some(100 * GIB)), (300 * MIB, 6_553_600, 1));
        assert_eq!(groups(30 * GIB, Some(100 * GIB)), (30 * GIB, 6_553_600, 2));
        // As always, a last group that would be too short is left out.
        assert_eq!(groups(25 * GIB + MIB, Some(100 * GIB)), (25 * GIB, 6_553_600, 1));
        assert_eq!(groups(GIB, Some(GIB)), groups(GIB, None));
        assert_eq!(groups(GIB, Some(300 * MIB)), groups(GIB, None));
    }

    #[test]
    fn small_volumes_have_two_groups_from_32_mib_and_lose_no_group() {
        let none = Stripe::default();
        assert_eq!(default(16 * MIB, none), (1, 4096));
        assert_eq!(default(32 * MIB, none), (2, 4096));
        assert_eq!(default(32 * MIB + 4096, none), (2, 4097));
        assert_eq!(default(64 * MIB + 4096, none), (3, 5462));
    }
}
