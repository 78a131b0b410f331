//! Files that use each other in a circle: none, but a module and what is in it.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Modules, Name};

/// The circles of a crate, a line for each.
pub(super) fn faults(modules: &Modules) -> Vec<String> {
    let arrows = modules.arrows();
    let line = |circle: Vec<&Name>| {
        let files: Vec<&str> = circle.iter().map(|name| modules.file(name)).collect();
        format!("{} use each other in a circle", files.join(", "))
    };
    circles(&arrows).into_iter().map(line).collect()
}

/// Sets of modules that all reach each other, by arrows between modules of which neither is in the
/// other.
fn circles(arrows: &BTreeMap<Name, BTreeSet<Name>>) -> Vec<Vec<&Name>> {
    let is_inside = |one: &Name, other: &Name| one.starts_with(other) || other.starts_with(one);
    let next = |from: &Name| {
        let from = from.clone();
        let targets = arrows.get(&from).into_iter().flatten();
        targets.filter(move |target| !is_inside(target, &from)).collect::<Vec<_>>()
    };
    let reached: BTreeMap<&Name, BTreeSet<&Name>> = arrows
        .keys()
        .map(|from| {
            let (mut seen, mut left) = (BTreeSet::new(), next(from));
            while let Some(name) = left.pop() {
                if seen.insert(name) {
                    left.extend(next(name));
                }
            }
            (from, seen)
        })
        .collect();
    let mut circles: Vec<Vec<&Name>> = Vec::new();
    for (name, seen) in &reached {
        if seen.contains(name) && !circles.iter().flatten().any(|other| other == name) {
            let both = |other: &&Name| reached.get(*other).is_some_and(|seen| seen.contains(name));
            circles.push(seen.iter().copied().filter(both).collect());
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_seen_and_a_module_with_its_parts_is_none() {
        let mut modules = Modules::default();
        modules.add("lib.rs".into(), "mod a; mod b; mod c; mod d;");
        modules.add("a.rs".into(), "use crate::b::of_b;");
        modules.add("b.rs".into(), "use crate::c::of_c;");
        modules.add("c/mod.rs".into(), "mod part; use crate::a::of_a; use part::y;");
        modules.add("c/part.rs".into(), "use super::of_c;");
        modules.add("d.rs".into(), "use crate::a::of_a;");
        assert_eq!(faults(&modules), ["a.rs, b.rs, c/mod.rs use each other in a circle"]);
    }
}
