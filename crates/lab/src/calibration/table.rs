//! The table of the machine's own speed.

use super::outcome::CalibrationOutcome;
use crate::report::blocks::{Blocks, Table};
use crate::report::number::percent;
use crate::statistics::Spread;

/// Writes one row for each step.
pub(crate) fn write(outcomes: &[&CalibrationOutcome], blocks: &mut Blocks) {
    let mut table =
        Table::new().words("behind").numbers("runs").group("ns a round").numbers("variation");
    for one in outcomes {
        let spread = Spread::of(&one.ns_of_runs);
        table.row([
            one.step.clone(),
            spread.count.to_string(),
            format!("{:.3}", spread.mean),
            percent(if spread.mean > 0.0 { spread.stddev / spread.mean } else { 0.0 }),
        ]);
    }
    blocks.table(table);
}
