//! Unplugging of 2008.

use super::outcome::{UnplugOutcome, Variant};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::report::blocks::Blocks;
use crate::report::chapter::{Chapter, Finding, TIMES};
use crate::report::chapter::{newest, outcomes};
use crate::statistics::{Estimate, Rule};

/// The one device over many disks.
pub(crate) fn chapter(records: &[Record]) -> Chapter<'_> {
    let sections = newest(records, |of| matches!(of, Outcome::Unplug(_)));
    let found = outcomes(&sections, Outcome::unplug);
    let mut published = Blocks::default();
    published.line(
        "The benchmark ran 18 % faster with the patch. Before it, the function that unplugs a disk",
    );
    published
        .line("was the first in the profile, with 13 % of the samples, most of them at the lock.");
    let gain = |own, other, name: &str| {
        let ratio = of(&found, own).zip(of(&found, other)).and_then(|(own, other)| {
            Estimate::of_ratios(&own.rate.iops_of_runs, &other.rate.iops_of_runs)
        });
        ratio.map(|ratio| (name.to_owned(), ratio)).into_iter().collect()
    };
    let locks = |variant| {
        of(&found, variant)
            .map(|one| (variant.to_string(), Estimate::exact(one.locks_per_idle_unplug)))
    };
    Chapter {
        id: "unplug",
        title: "Unplugging without a lock",
        question: "One logical device stands over 48 disks, and each wait for it unplugs them all. What does it cost \
             to take the lock of every disk only to find that it holds nothing back?",
        source: "Mikulas Patocka, \u{201c}Optimize lock in queue unplugging\u{201d}, linux-kernel, April 2008, with figures \
             by Mike Anderson: an OLTP benchmark on 48 physical disks under one device of the device mapper.",
        published,
        findings: vec![
            Finding {
                claim: "A look before the lock makes the mix faster where disks answer at once"
                    .to_owned(),
                rule: Rule::AtLeast(1.05),
                unit: TIMES,
                published: "1.18, with real disks".to_owned(),
                measured: gain(Variant::TestFirst, Variant::Locked, "test-first beside locked"),
            },
            Finding {
                claim: "A plug of the submitting thread (Linux since 2011) is faster again"
                    .to_owned(),
                rule: Rule::AtLeast(1.0),
                unit: TIMES,
                published: String::new(),
                measured: gain(
                    Variant::ThreadPlug,
                    Variant::TestFirst,
                    "thread-plug beside test-first",
                ),
            },
            Finding {
                claim: "An unplug that finds nothing takes no lock".to_owned(),
                rule: Rule::AtMost(0.0),
                unit: "locks",
                published: "none with the patch, 48 before".to_owned(),
                measured: [Variant::TestFirst, Variant::ThreadPlug]
                    .into_iter()
                    .filter_map(locks)
                    .collect(),
            },
        ],
        differs: "The gain depends on the share of the lock in all work. Disks that answer at once, as a cache of a \
             controller does, leave little else; with disks that take 100 us the kernel's waking of \
             threads is nearly everything, and no lock matters.",
        sections,
    }
}

/// The outcome with disks that answer at once.
fn of<'a>(found: &[&'a UnplugOutcome], variant: Variant) -> Option<&'a UnplugOutcome> {
    found.iter().find(|one| one.variant == variant && one.service_us == 0.0).copied()
}
