//! Which way the arrows between the rooms of a crate point.
//!
//! The root of a crate (`lib.rs` or `main.rs`) declares its rooms floor by floor, from the ground up:
//! floors are separated by blank lines. A room imports only from the floors before its own. So there are no
//! circles, and the list tells a reader what stands on what. Nor do files within a room use each other in a
//! circle.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::circles;
use super::modules::Modules;

/// Crates whose rooms have no floors, and why.
const WITHOUT_FLOORS: [(&str, &str); 1] =
    [("crates/lab", "an experiment gives an outcome, which is of any experiment")];

/// Checks all crates.
pub(super) fn check(root: &Path) -> Result<()> {
    let mut faults = String::new();
    for source in sources(root)? {
        let name = source.parent().unwrap_or(root).strip_prefix(root)?.display().to_string();
        let path = ["lib.rs", "main.rs"].map(|file| source.join(file));
        let path = path.iter().find(|path| path.exists());
        let path = path.with_context(|| format!("{name} has neither lib.rs nor main.rs"))?;
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let modules = Modules::read(&source)?;
        let mut found = circles::faults(&modules);
        if !WITHOUT_FLOORS.iter().any(|(without, _)| *without == name) {
            let floors = Floors::new(&text);
            found.extend(floors.faults(&modules));
            println!("{name}: {} rooms on {} floors", floors.of.len(), floors.count);
        }
        for fault in found {
            // Writing to a string does not fail.
            let _ = write!(faults, "\n  {name}: {fault}");
        }
    }
    if !faults.is_empty() {
        bail!("imports that lead up, or in a circle:{faults}");
    }
    Ok(())
}

/// The sources of all crates of the repository.
fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let crates = root.join("crates");
    let mut all = vec![root.join("fuzz/targets/src"), root.join("xtask/src")];
    for entry in
        fs::read_dir(&crates).with_context(|| format!("cannot list {}", crates.display()))?
    {
        all.push(entry?.path().join("src"));
    }
    all.sort();
    Ok(all)
}

/// The floors of the rooms of a crate.
struct Floors {
    /// Floor of each room, the ground is 0.
    of: BTreeMap<String, usize>,
    /// Number of floors.
    count: usize,
}

impl Floors {
    /// Reads the declarations at the root of a crate.
    fn new(text: &str) -> Self {
        let (mut of, mut floor, mut is_open) = (BTreeMap::new(), 0, false);
        for line in text.lines() {
            let plain = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub "));
            let declared = plain.unwrap_or(line).strip_prefix("mod ");
            if let Some(room) = declared.and_then(|rest| rest.trim_end().strip_suffix(';')) {
                of.insert(room.to_owned(), floor);
                is_open = true;
            } else if line.trim().is_empty() && is_open {
                (floor, is_open) = (floor + 1, false);
            }
        }
        Self { of, count: floor + usize::from(is_open) }
    }

    /// Imports that do not lead down.
    fn faults(&self, modules: &Modules) -> Vec<String> {
        let mut faults = Vec::new();
        for (from, targets) in modules.arrows() {
            let Some((room, own)) = from.first().and_then(|room| self.of.get_key_value(room))
            else {
                continue;
            };
            for target in targets {
                let Some(other) = target.first().filter(|other| *other != room) else { continue };
                if self.of.get(other).is_some_and(|floor| floor >= own) {
                    let file = modules.file(&from);
                    faults.push(format!("src/{file}: `{other}` is not below `{room}`"));
                }
            }
        }
        faults.dedup();
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "// Ground.\nmod low;\nmod other;\n\n// Above.\n#[cfg(unix)]\npub mod high;\n\n\
                       pub use high::{Tower, roof as top};\n";

    fn faults(file: &str, text: &str) -> usize {
        let mut modules = Modules::default();
        for (file, text) in [("lib.rs", LIB), ("low.rs", ""), ("other.rs", ""), ("high.rs", "")] {
            modules.add(file.into(), text);
        }
        modules.add(file.into(), text);
        let floors = Floors::new(LIB);
        assert_eq!(floors.count, 2);
        floors.faults(&modules).len()
    }

    #[test]
    fn an_arrow_that_leads_up_is_seen() {
        assert_eq!(faults("low/part.rs", "use crate::high::Tower;"), 1);
        assert_eq!(faults("low.rs", "use crate::{Tower, other::{a, high}};"), 2);
        assert_eq!(faults("low.rs", "fn f() { crate::high::roof() }"), 1);
        assert_eq!(faults("high.rs", "use crate::{low, other::thing};"), 0);
        assert_eq!(faults("low.rs", "// crate::high\nuse crate::low::x;"), 0);
        assert_eq!(faults("low.rs", "#[cfg(test)]\nmod tests {\nuse crate::high;\n}"), 0);
    }
}
