//! Tables of free space that was made.

use super::AgeOutcome;
use crate::report::blocks::Blocks;

/// Writes what each ageing left.
pub(crate) fn write(outcomes: &[&AgeOutcome], blocks: &mut Blocks) {
    for one in outcomes {
        let AgeOutcome { kept, refused, free_blocks, free_extents, longest, .. } = one;
        let mean = *free_blocks as f64 / (*free_extents).max(1) as f64;
        blocks.line(format!(
            "{kept} extents kept, {refused} wanted but in use; {free_blocks} blocks free in \
             {free_extents} extents, {mean:.1} on average, the longest {longest}"
        ));
        blocks.histogram(&one.free, *free_extents);
    }
}
