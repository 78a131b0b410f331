//! The processors that there are binaries for, and the tools that build for them.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use undercroft_judges::cache;

use crate::system::{self, Program};
use crate::{shell, workspace};

/// Programs from PyPI, which is where a zig comes as a package, and versions that are known to do.
const FROM_PYPI: [&str; 2] = ["ziglang==0.13.0", "cargo-zigbuild==0.24.1"];

/// A processor; the system is Linux, the C library musl, linked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Architecture {
    #[value(name = "x86_64")]
    X86_64,
    Aarch64,
}

impl Architecture {
    pub(crate) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Those that were asked for, which is all of them if none is named.
    pub(crate) const fn chosen(only: &[Self]) -> &[Self] {
        if only.is_empty() { &Self::ALL } else { only }
    }

    /// As Linux and RPM name it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    pub(super) const fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-musl",
            Self::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    /// The part of names of environment variables for C compilers.
    pub(super) fn variable(self) -> String {
        self.triple().replace('-', "_")
    }

    /// What separates debug information.
    pub(super) const fn objcopy(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu-objcopy",
            Self::Aarch64 => "aarch64-linux-gnu-objcopy",
        }
    }

    /// What makes the linker leave out copies of functions, and a list of relocations that is ten times
    /// as long: that of Rust's toolchain can. The one of zig does not know these options.
    pub(super) fn link_flags(self) -> Result<Vec<OsString>> {
        if self == Self::Aarch64 {
            return Ok(Vec::new());
        }
        let sysroot = shell::output(Command::new("rustc").args(["--print", "sysroot"]))?;
        let host = format!("lib/rustlib/{}-unknown-linux-gnu/bin/gcc-ld", std::env::consts::ARCH);
        let linker = Path::new(sysroot.trim()).join(host);
        ensure!(
            linker.join("ld.lld").exists(),
            "{} has no ld.lld; take the compiler from rustup, which brings it",
            linker.display()
        );
        let mut place = OsString::from("-Clink-arg=-B");
        place.push(linker);
        let others = ["-fuse-ld=lld", "-Wl,--icf=all", "-Wl,-z,pack-relative-relocs"];
        let others = others.map(|flag| format!("-Clink-arg={flag}").into());
        Ok(std::iter::once(place).chain(others).collect())
    }

    const fn programs(self) -> &'static [Program] {
        match self {
            Self::X86_64 => system::FOR_X86_64,
            Self::Aarch64 => system::FOR_AARCH64,
        }
    }

    /// Installs what builds for it: standard library, compiler of C, tools for object files.
    pub(super) fn prepare(self) -> Result<()> {
        system::install(self.programs())?;
        // Where cargo comes without rustup, the library has to be there.
        if shell::find("rustup").is_some() {
            let mut rustup = Command::new("rustup");
            shell::run(rustup.current_dir(workspace::root()).args([
                "target",
                "add",
                self.triple(),
            ]))?;
        }
        if self == Self::Aarch64 { system::install_from_pypi(&FROM_PYPI) } else { Ok(()) }
    }

    /// The cargo that builds for it: a compiler and linker of C for another processor comes with
    /// zig.
    pub(super) fn cargo_build(self) -> Result<Command> {
        let mut command = match self {
            Self::X86_64 => {
                let mut cargo = workspace::cargo();
                cargo.arg("build").env("CC_x86_64_unknown_linux_musl", "musl-gcc");
                cargo
            }
            Self::Aarch64 => {
                let programs = cache::python().join("bin");
                let mut cargo = workspace::builder(programs.join("cargo-zigbuild"));
                let rest = std::env::var_os("PATH").unwrap_or_default();
                let all = std::iter::once(programs).chain(std::env::split_paths(&rest));
                cargo.arg("zigbuild").env("PATH", std::env::join_paths(all)?);
                cargo
            }
        };
        command.args(["--target", self.triple()]);
        Ok(command)
    }
}
