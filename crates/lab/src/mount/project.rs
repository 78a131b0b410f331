//! What is built on the volumes: a tree in an archive, and the programs that work on it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{JOBS, Source};
use crate::error::LabError;
use crate::measure::random::stream;

/// Functions of a generated file, each in a header of its own.
const FUNCTIONS: usize = 30;
/// Purpose of the random numbers of a generated project.
const PURPOSE: u64 = 41;
/// Settings of a `make` that may have started this process.
const FOREIGN: [&str; 4] = ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CARGO_MAKEFLAGS"];

/// A tree in an archive.
pub(super) struct Project {
    name: String,
    archive: PathBuf,
    /// What the program prints that is made of it, if that is known.
    prints: Option<String>,
}

impl Project {
    /// The one that `source` asks for; a generated one is written into `scratch`.
    pub(super) fn new(source: &Source, seed: u64, scratch: &Path) -> Result<Self, LabError> {
        match source {
            Source::Generated(files) => generate(*files, seed, scratch),
            Source::Archive(path) => {
                let failed = |source| LabError::File { path: path.clone(), source };
                let archive = fs::canonicalize(path).map_err(failed)?;
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Ok(Self { name, archive, prints: None })
            }
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn unpack(&self, top: &Path) -> Result<(), LabError> {
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--no-same-owner", "--file"]).arg(&self.archive);
        run(tar.arg("--directory").arg(top)).map(drop)
    }

    pub(super) fn make(&self, top: &Path) -> Result<(), LabError> {
        let tree = tree(top)?;
        let makefiles = ["GNUmakefile", "makefile", "Makefile"];
        let has_makefile = makefiles.iter().any(|name| tree.join(name).exists());
        if !has_makefile && tree.join("configure").exists() {
            run(Command::new("./configure").current_dir(&tree))?;
        }
        make(&tree, &[&format!("-j{JOBS}")])
    }

    pub(super) fn clean(&self, top: &Path) -> Result<(), LabError> {
        make(&tree(top)?, &["clean"])
    }

    /// Runs what was built, where it is known what that prints.
    pub(super) fn prove(&self, top: &Path) -> Result<(), LabError> {
        let Some(expected) = &self.prints else { return Ok(()) };
        let printed = run(&mut Command::new(tree(top)?.join("project")))?;
        if printed.trim() == expected {
            return Ok(());
        }
        Err(LabError::WrongProgram { printed, expected: expected.clone() })
    }
}

/// Where the archive put its tree: in a directory of its own, or in `top` itself.
fn tree(top: &Path) -> Result<PathBuf, LabError> {
    let failed = |source| LabError::Target { what: "list", path: top.to_owned(), source };
    let mut entries = fs::read_dir(top).map_err(failed)?;
    match (entries.next().transpose().map_err(failed)?, entries.next()) {
        (Some(only), None) if only.path().is_dir() => Ok(only.path()),
        _ => Ok(top.to_owned()),
    }
}

fn make(tree: &Path, arguments: &[&str]) -> Result<(), LabError> {
    let mut make = Command::new("make");
    for name in FOREIGN {
        make.env_remove(name);
    }
    run(make.arg("--silent").args(arguments).current_dir(tree)).map(drop)
}

/// Runs a program to its end; what it printed.
fn run(command: &mut Command) -> Result<String, LabError> {
    let program = || {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    };
    let program = program();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|source| LabError::Program { program: program.clone(), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    let said = lines[lines.len().saturating_sub(5)..].join("; ");
    Err(LabError::Failed { program, status: output.status, said })
}

/// A function `x -> x` of the project, as numbers.
struct Function {
    rounds: u32,
    mask: u32,
    factor: u32,
}

impl Function {
    fn random(random: &mut fastrand::Rng) -> Self {
        Self { rounds: random.u32(10..1000), mask: random.u32(..), factor: random.u32(..) | 1 }
    }

    /// What the compiled one returns.
    fn apply(&self, x: u32) -> u32 {
        let Self { rounds, mask, factor } = *self;
        (0..rounds).fold(x, |x, round| (x ^ mask).wrapping_mul(factor).wrapping_add(round))
    }

    fn source(&self, number: usize) -> String {
        let Self { rounds, mask, factor } = self;
        format!(
            "static unsigned function_{number}(unsigned x)\n{{\n\
             \tfor (unsigned round = 0; round < {rounds}u; round++)\n\
             \t\tx = (x ^ {mask}u) * {factor}u + round;\n\treturn x;\n}}\n"
        )
    }
}

/// Writes a project: units of functions in headers, a program that calls all, and a makefile.
fn generate(files: usize, seed: u64, scratch: &Path) -> Result<Project, LabError> {
    let top = scratch.join("project");
    let mut random = stream(seed, PURPOSE);
    let mut value = 1_u32;
    let (mut declared, mut called, mut objects) = (String::new(), String::new(), String::new());
    for unit in 0..files {
        let (mut included, mut body) = (String::new(), String::new());
        for number in 0..FUNCTIONS {
            let function = Function::random(&mut random);
            value = function.apply(value);
            write(&top, &format!("unit_{unit}/function_{number}.h"), &function.source(number))?;
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(included, "#include \"function_{number}.h\"");
            let _ = writeln!(body, "\tx = function_{number}(x);");
        }
        let text = format!(
            "#include \"../project.h\"\n{included}\nunsigned unit_{unit}(unsigned x)\n{{\n{body}\
             \treturn x;\n}}\n"
        );
        write(&top, &format!("unit_{unit}/unit.c"), &text)?;
        let _ = writeln!(declared, "unsigned unit_{unit}(unsigned x);");
        let _ = writeln!(called, "\tx = unit_{unit}(x);");
        let _ = write!(objects, " unit_{unit}/unit.o");
    }
    let headers = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n";
    write(&top, "project.h", &format!("{headers}{declared}"))?;
    let main = format!(
        "#include \"project.h\"\n\nint main(void)\n{{\n\tunsigned x = 1;\n{called}\
         \tprintf(\"%08x\\n\", x);\n\treturn 0;\n}}\n"
    );
    write(&top, "main.c", &main)?;
    let makefile = format!(
        "CFLAGS = -O2\nOBJECTS = main.o{objects}\n\nproject: $(OBJECTS)\n\
         \t$(CC) -o $@ $(OBJECTS)\n\n$(OBJECTS): project.h\n\n\
         clean:\n\trm -f project $(OBJECTS)\n\n.PHONY: clean\n"
    );
    write(&top, "Makefile", &makefile)?;
    let archive = scratch.join("project.tar");
    let mut tar = Command::new("tar");
    tar.args(["--create", "--file"]).arg(&archive).arg("--directory").arg(scratch);
    run(tar.arg("project"))?;
    let name = format!("a generated project of {files} files in C");
    Ok(Project { name, archive, prints: Some(format!("{value:08x}")) })
}

/// Writes a file of the project, and the directory that it is in.
fn write(top: &Path, name: &str, text: &str) -> Result<(), LabError> {
    let path = top.join(name);
    let directory = path.parent().unwrap_or(top);
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&path, text))
        .map_err(|source| LabError::File { path, source })
}
