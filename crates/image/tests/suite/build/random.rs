//! Random trees in random formats; `cargo xtask soak build` runs more of them.

use undercroft_judges::{kernel, rounds};

use undercroft_testkit::image::combination::Combination;

#[test]
fn random_trees_in_random_formats() {
    if !kernel::available_or_report() {
        return;
    }
    let count = rounds(12, 30);
    let failed: Vec<String> = (1..=count)
        .map(Combination::new)
        .filter_map(|combination| Some((combination.run().err()?, combination)))
        .map(|(error, combination)| format!("{combination}\n{error}"))
        .collect();
    assert!(failed.is_empty(), "{} of {count} failed:\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn the_smallest_volumes_of_random_trees() {
    if !kernel::available_or_report() {
        return;
    }
    for seed in 1000..rounds(1006, 1016) {
        let combination = Combination::smallest(seed);
        match combination.surplus() {
            Ok(surplus) => assert!(surplus <= 0, "{combination}: {surplus} bytes too much"),
            Err(error) => panic!("{combination}\n{error}"),
        }
    }
}
