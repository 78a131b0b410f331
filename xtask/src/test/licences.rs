//! Licences and origins of all dependencies; whether the fuzz targets lock the same ones.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use spdx::{Expression, ParseMode};

use crate::packages::{self, Dependency, Package};
use crate::{shell, workspace};

/// Permissive only: the project is offered under MIT or Apache-2.0.
const ALLOWED: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The only origin besides this repository.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Where it runs: what crates need on other systems is never built.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Checks the dependency tree. Advisories are left out: they change without a change here.
pub(super) fn check() -> Result<()> {
    check_fuzz_lock()?;
    let targets: Vec<&str> =
        TARGETS.iter().flat_map(|target| ["--filter-platform", target]).collect();
    let packages = packages::all(&targets)?;
    let wrong: Vec<String> = packages
        .iter()
        .filter_map(|one| judge(one).err())
        .map(|error| format!("{error:#}"))
        .collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    tell(&packages);
    Ok(())
}

fn judge(package: &Package) -> Result<()> {
    let Package { name, version, .. } = package;
    match &package.source {
        None => {
            let wild = |one: &&Dependency| one.req == "*" && one.path.is_none();
            if let Some(one) = package.dependencies.iter().find(wild) {
                bail!("{name} takes any version of {}: name one", one.name);
            }
        }
        Some(source) => ensure!(source == REGISTRY, "{name} {version} comes from {source}"),
    }
    let licence = package.license.as_deref();
    let licence = licence.with_context(|| format!("{name} {version} names no licence"))?;
    // Old manifests write `/` for `OR`.
    let expression = Expression::parse_mode(licence, ParseMode::LAX)
        .map_err(|error| anyhow::anyhow!("{name} {version}: {error}"))?;
    let is_allowed = expression.evaluate(|one| ALLOWED.contains(&one.to_string().as_str()));
    ensure!(is_allowed, "{name} {version} is under {licence}, which is not on the list");
    Ok(())
}

/// Says how many there are, and which of them in several versions.
fn tell(packages: &[Package]) {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    println!("{} packages", packages.len());
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        println!("{name} in versions {}", versions.join(", "));
    }
}

/// Checks that the lock file of the fuzz targets, which are not part of the workspace and which no
/// other check builds, follows the dependencies.
fn check_fuzz_lock() -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["tree", "--locked", "--depth", "0", "--manifest-path", "fuzz/Cargo.toml"]);
    shell::run(&mut command).context(
        "fuzz/Cargo.lock is old; `cargo tree --manifest-path fuzz/Cargo.toml` brings it up to date",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn package(license: Option<&str>, source: Option<&str>) -> Package {
        let [license, source] = [license, source].map(|text| text.map(str::to_owned));
        let (name, version) = ("one".to_owned(), "1.0.0".to_owned());
        let manifest_path = PathBuf::new();
        Package { name, version, license, source, manifest_path, dependencies: Vec::new() }
    }

    #[test]
    fn only_licences_on_the_list_pass() {
        for licence in ["MIT", "MIT/Apache-2.0", "Apache-2.0 / MIT", "GPL-2.0-only OR Zlib"] {
            judge(&package(Some(licence), Some(REGISTRY))).unwrap();
        }
        for licence in [Some("GPL-2.0-only"), Some("MIT AND LGPL-3.0"), Some("unclear"), None] {
            assert!(judge(&package(licence, Some(REGISTRY))).is_err(), "{licence:?}");
        }
        let elsewhere = package(Some("MIT"), Some("git+https://example.org/one"));
        assert!(judge(&elsewhere).is_err());
    }

    #[test]
    fn a_version_that_is_left_open_is_refused() {
        let mut own = package(Some("MIT"), None);
        own.dependencies.push(Dependency { name: "two".into(), req: "*".into(), path: None });
        assert!(judge(&own).unwrap_err().to_string().contains("two"));
        own.dependencies[0].path = Some("../two".into());
        judge(&own).unwrap();
    }
}
