//! Random trees in random formats; `cargo xtask soak build` runs more of them.

use undercroft_judges::kernel;

use crate::combination::Combination;

#[test]
fn random_trees_in_random_formats() {
    if !kernel::available_or_report("image::random::random_trees_in_random_formats") {
        return;
    }
    let failed: Vec<String> = (1..=30)
        .map(Combination::new)
        .filter_map(|combination| Some((combination.run().err()?, combination)))
        .map(|(error, combination)| format!("{combination}\n{error}"))
        .collect();
    assert!(failed.is_empty(), "{} of 30 failed:\n{}", failed.len(), failed.join("\n\n"));
}
