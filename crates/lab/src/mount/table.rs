//! The tables of the experiment on mounted volumes, as Brunelle's of February 2008.

use super::outcome::{MountOutcome, Step};
use crate::report::blocks::{Blocks, Table};
use crate::statistics::Estimate;
use crate::statistics::Spread;

/// Writes the times, step by step, and the counts of each setting.
pub(crate) fn write(outcomes: &[&MountOutcome], blocks: &mut Blocks) {
    let mut table = Table::new()
        .words("step")
        .words("setting")
        .group("Min")
        .numbers("Avg")
        .numbers("Max")
        .numbers("Std Dev")
        .group("beside the first");
    for step in Step::ALL {
        if step != Step::Mkfs {
            table.rule('-');
        }
        for one in outcomes {
            let seconds = one.steps.iter().filter(|times| times.step == step);
            let seconds: Vec<f64> = seconds.flat_map(|times| &times.seconds).copied().collect();
            let spread = Spread::of(&seconds);
            let first = outcomes.first().filter(|first| first.tunables != one.tunables);
            let ratio = first
                .and_then(|first| Estimate::of_ratios(&one.runs_of(step), &first.runs_of(step)));
            let number = |seconds: f64| format!("{seconds:.3}");
            table.row([
                step.name().to_owned(),
                one.tunables.to_string(),
                number(spread.min),
                number(spread.mean),
                number(spread.max),
                number(spread.stddev),
                ratio.map_or_else(String::new, |ratio| ratio.to_string()),
            ]);
        }
    }
    blocks.table(table);
    blocks.gap();
    write_counts(outcomes, blocks);
}

fn write_counts(outcomes: &[&MountOutcome], blocks: &mut Blocks) {
    let mut table = Table::new()
        .words("setting")
        .group("Q-local")
        .numbers("Q-remote")
        .group("C-local")
        .numbers("C-remote");
    for one in outcomes {
        let counts = [one.q_local, one.q_remote, one.c_local, one.c_remote];
        let cells = counts.map(|count| format!("{count:.1}"));
        table.row([one.tunables.to_string()].into_iter().chain(cells));
    }
    blocks.table(table);
}
