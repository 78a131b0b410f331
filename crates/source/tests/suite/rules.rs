//! Rules over sources: the same over directories and archives, and what is refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use undercroft_source::{
    Entry, Kind, Options, RuleList, Source, SourceError, SourceOptions, SourceSpec, Timestamp,
};

use crate::archive::Archive;
use crate::collect::{Delivered, drain, open};

/// The options of rules, given as a text.
fn options(rules: &str, directory: &Path) -> Result<SourceOptions, String> {
    let mut list = RuleList::default();
    list.made_at(Timestamp { seconds: 77, nanoseconds: 0 });
    let added = list.add_text(rules.as_bytes(), "rules", directory);
    let (exclude, rules) = added.and_then(|()| list.finish()).map_err(|error| error.to_string())?;
    let reading = Options { exclude, ..Options::default() };
    Ok(SourceOptions { rules: Arc::new(rules), ..reading.into() })
}

/// What a source delivers, after a scan that must show the same.
fn read(source: &mut dyn Source) -> Result<Vec<Delivered>, SourceError> {
    let mut scanned: Vec<Entry> = Vec::new();
    source.scan(&mut |entry| scanned.push(entry.clone()))?;
    let all = drain(source)?;
    let entries: Vec<_> = all.iter().map(|delivered| delivered.entry.clone()).collect();
    assert_eq!(scanned, entries);
    source.restart()?;
    assert_eq!(drain(source)?, all);
    Ok(all)
}

fn read_path(
    path: &Path,
    options: &SourceOptions,
) -> Result<(Vec<Delivered>, Vec<String>), String> {
    let spec = SourceSpec::Path(path.to_owned());
    let mut source = open(&spec, options).map_err(|error| error.to_string())?;
    let all = read(source.as_mut()).map_err(|error| error.to_string())?;
    Ok((all, source.warnings().rules))
}

fn tree(home: &Path) -> std::path::PathBuf {
    let root = home.join("tree");
    fs::create_dir_all(root.join("etc/deep")).unwrap();
    fs::create_dir_all(root.join("usr/share/doc/x")).unwrap();
    fs::create_dir_all(root.join("usr/lib")).unwrap();
    fs::write(root.join("etc/passwd"), "root").unwrap();
    fs::write(root.join("etc/deep/a.conf"), "a").unwrap();
    fs::set_permissions(root.join("etc/deep/a.conf"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(root.join("etc/passwd"), root.join("etc/passwd-")).unwrap();
    fs::write(root.join("usr/share/doc/x/README"), "read").unwrap();
    fs::write(root.join("usr/share/doc/x/copyright"), "c").unwrap();
    symlink("usr/lib", root.join("lib")).unwrap();
    root
}

fn tar(root: &Path, archive: &Path) {
    let mut command = Command::new("tar");
    command.args(["--create", "--sort=name", "--format=pax", "--xattrs", "--file"]).arg(archive);
    let status = command.arg("--directory").arg(root).arg(".").status().unwrap();
    assert!(status.success());
}

fn of<'a>(all: &'a [Delivered], path: &str) -> &'a Delivered {
    all.iter().find(|delivered| delivered.path() == path).unwrap_or_else(|| panic!("no {path}"))
}

fn paths(all: &[Delivered]) -> Vec<String> {
    all.iter().map(Delivered::path).collect()
}

#[test]
fn rules_do_the_same_over_a_directory_and_an_archive_of_it() {
    let home = tempfile::tempdir().unwrap();
    let root = tree(home.path());
    fs::write(home.path().join("motd"), "hello").unwrap();
    fs::write(home.path().join("fc"), "/.* u:r:any\n/etc(/.*)? -- u:r:etc:s0\n/new u:r:new\n")
        .unwrap();
    let owner = root.metadata().unwrap().uid();
    let rules = format!(
        "# what there is\n\
         exclude /usr/share/doc\n\
         include copyright\n\
         add motd:/etc/passwd.new\n\
         add motd:/new/motd\n\
         mkdir /etc/deep\n\
         symlink ../run:/var/run\n\
         # what it is like\n\
         owner-map {owner}:4000\n\
         chown 5:6 /etc/**\n\
         chown :7 *.conf\n\
         chmod go-rwx /etc/**\n\
         chmod g+r *.conf\n\
         root-mode 1777\n\
         xattr user.b=two '/etc/deep/a.conf'\n\
         xattr user.a=0x01 **\n\
         mtime @99\n\
         selinux fc\n"
    );
    let options = options(&rules, home.path()).unwrap();
    let archive = home.path().join("archive");
    tar(&root, &archive);
    let (all, warnings) = read_path(&root, &options).unwrap();
    let (of_archive, archive_warnings) = read_path(&archive, &options).unwrap();
    assert_eq!((&warnings, &archive_warnings), (&vec![], &vec![]));
    assert_eq!(paths(&all), paths(&of_archive));
    for (one, other) in all.iter().zip(&of_archive) {
        let other = Delivered {
            entry: Entry { links: one.entry.links, ..other.entry.clone() },
            ..other.clone()
        };
        assert!(*one == other || matches!(one.entry.kind, Kind::HardLink(_)), "{one:?} {other:?}");
    }
    assert_eq!(
        paths(&all),
        [
            "",
            "etc",
            "etc/deep",
            "etc/deep/a.conf",
            "etc/passwd",
            "etc/passwd-",
            "lib",
            "usr",
            "usr/lib",
            "usr/share",
            "usr/share/doc",
            "usr/share/doc/x",
            "usr/share/doc/x/copyright",
            "etc/passwd.new",
            "new",
            "new/motd",
            "var",
            "var/run",
        ]
    );
    let label = |path: &str| {
        let xattrs = &of(&all, path).entry.xattrs;
        let label = xattrs.iter().find(|xattr| xattr.name == b"security.selinux").unwrap();
        String::from_utf8(label.value.clone()).unwrap()
    };
    assert_eq!(label("etc"), "u:r:any\0");
    assert_eq!(label("etc/passwd"), "u:r:etc:s0\0");
    assert_eq!(label("etc/passwd.new"), "u:r:etc:s0\0");
    assert_eq!(label("new"), "u:r:new\0");
    let metadata = |path: &str| of(&all, path).entry.metadata;
    assert_eq!((metadata("etc/deep/a.conf").uid, metadata("etc/deep/a.conf").gid), (5, 7));
    assert_eq!(metadata("etc/deep/a.conf").mode, 0o640);
    assert_eq!(metadata("usr").uid, 4000);
    assert_eq!((metadata("").mode, metadata("new").mode), (0o1777, 0o755));
    assert_eq!(metadata("var").mtime, Timestamp { seconds: 99, nanoseconds: 0 });
    assert_eq!(of(&all, "new/motd").contents(), b"hello");
    assert_eq!(of(&all, "var/run").entry.kind, Kind::Symlink(b"../run".to_vec()));
    let names = |path: &str| -> Vec<_> {
        of(&all, path)
            .entry
            .xattrs
            .iter()
            .map(|xattr| String::from_utf8(xattr.name.clone()).unwrap())
            .collect()
    };
    assert_eq!(names("etc/deep/a.conf"), ["security.selinux", "user.a", "user.b"]);
    // Kernels have no attributes of users on symbolic links.
    assert_eq!(names("lib"), ["security.selinux"]);
}

#[test]
fn an_added_file_takes_the_place_of_one_that_the_source_has_and_keeps_its_holes() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("tree");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), vec![1; 3_000_000]).unwrap();
    fs::write(root.join("b"), "kept").unwrap();
    let sparse = fs::File::create(home.path().join("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, &[9; 5_000_000], 8 << 20).unwrap();
    let options = options("add sparse:/a\nsymlink a:/c\n", home.path()).unwrap();
    let (all, _) = read_path(&root, &options).unwrap();
    assert_eq!(paths(&all), ["", "b", "a", "c"]);
    let Kind::Regular { size, data } = &of(&all, "a").entry.kind else { panic!() };
    assert_eq!(*size, 64 << 20);
    assert!(data.iter().map(|range| range.length).sum::<u64>() < 6_000_000);
    assert_eq!(of(&all, "a").contents()[(8 << 20)..][..5_000_000], [9; 5_000_000]);
    assert_eq!(of(&all, "b").contents(), b"kept");
    assert_eq!(of(&all, "c").entry.metadata.mtime.seconds, 77);
}

#[test]
fn an_access_list_follows_mode_and_owners() {
    let list = |group: u8, mask: u8| -> Vec<u8> {
        let entry =
            |tag: u8, bits: u8, id: u32| [&[tag, 0, bits, 0][..], &id.to_le_bytes()].concat();
        let none = u32::MAX;
        [
            vec![2, 0, 0, 0],
            entry(1, 6, none),
            entry(2, 7, 1000),
            entry(4, group, none),
            entry(16, mask, none),
            entry(32, 0, none),
        ]
        .concat()
    };
    let home = tempfile::tempdir().unwrap();
    let archive = Archive::default()
        .pax(&[("SCHILY.acl.access", b"user::rw-,user:1000:rwx,group::r-x,mask::rwx,other::---")])
        .file("f", b"");
    fs::write(home.path().join("tar"), archive.end()).unwrap();
    let options = options("chmod g=r f\nowner-map 1000:33\n", home.path()).unwrap();
    let (all, _) = read_path(&home.path().join("tar"), &options).unwrap();
    let mut wanted = list(5, 4);
    wanted[16..20].copy_from_slice(&33_u32.to_le_bytes());
    assert_eq!(of(&all, "f").entry.xattrs[0].value, wanted);
    assert_eq!(of(&all, "f").entry.metadata.mode, 0o640);
}

#[test]
fn rules_that_do_nothing_are_reported_and_refused_when_strict() {
    let home = tempfile::tempdir().unwrap();
    let root = tree(home.path());
    for (rules, warning) in [
        ("chmod 600 /etc/paswd\n", "rules, line 1 (chmod 600 /etc/paswd): matches nothing"),
        (
            "chown 1:1 /etc/passwd-\n",
            "matches 1 later names of files, whose attributes follow the first name; the first is etc/passwd-, another name of etc/passwd",
        ),
        ("selinux fc\n", "1 files have names with different labels"),
    ] {
        fs::write(home.path().join("fc"), "/.* u:r:any\n/etc/passwd- u:r:other\n").unwrap();
        let mut options = options(rules, home.path()).unwrap();
        let (_, warnings) = read_path(&root, &options).unwrap();
        assert!(warnings.len() == 1 && warnings[0].contains(warning), "{warnings:?}");
        options.reading.strict = true;
        let error = read_path(&root, &options).unwrap_err();
        assert!(error.contains(warning), "{error}");
    }
    // Classes that may be empty are no mistake.
    let none = options("exclude *.o\ninclude x.o\nowner-map 12345:1\n", home.path()).unwrap();
    assert!(read_path(&root, &none).unwrap().1.is_empty());
}

#[test]
fn exclusions_that_match_nothing_are_refused_when_strict() {
    let home = tempfile::tempdir().unwrap();
    let root = tree(home.path());
    for (rules, unmatched) in [
        ("exclude passwd\n", None),
        ("exclude passwd\nexclude *.o\n", Some("*.o")),
        ("exclude /etc\ninclude /etc/passwd\n", None),
        ("exclude /etc\ninclude /etc/paswd\n", Some("/etc/paswd")),
        ("exclude passwd\nexclude /etc/paswd\nchmod 600 /etc/passwd-\n", Some("/etc/paswd")),
    ] {
        let mut options = options(rules, home.path()).unwrap();
        assert!(read_path(&root, &options).is_ok());
        options.reading.strict = true;
        // Options can be used again: what was seen before does not count.
        for _ in 0..2 {
            match (read_path(&root, &options), unmatched) {
                (Ok(_), None) => {}
                (Err(error), Some(pattern)) => {
                    assert!(error.contains(&format!("{pattern} matches nothing")), "{error}");
                }
                (found, wanted) => panic!("{rules}: {:?}, not {wanted:?}", found.err()),
            }
        }
    }
}

#[test]
fn wrong_rules_are_refused_with_their_line() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    fs::write(home.path().join("fc"), "/a u:r:t\n/b( u:r:t\n").unwrap();
    for (rule, defect) in [
        ("chattr +i /x", "there is no rule chattr; the rules are exclude, include"),
        ("chmod 644", "write chmod MODE GLOB"),
        ("mkdir", "write mkdir /PATH"),
        ("chmod 999 *", "octal digits"),
        ("chmod 644 /etc/[", "unclosed character class"),
        ("exclude {a", "unclosed alternate group"),
        ("chown root:root *", "in numbers"),
        ("owner-map 1:2,1:3", "maps numbers that a part before maps"),
        ("xattr user.a *", "NAME=VALUE"),
        ("xattr foo=1 *", "begins with user."),
        ("mtime yesterday", "@SECONDS"),
        ("add 'file:/x", "a quote is not closed"),
        ("add absent:/x", "cannot find"),
        ("add .:/x", "is no regular file"),
        ("add file", "write add FILE:/PATH"),
        ("add file:/a/../b", "has a \"..\" component"),
        ("mkdir /", "is the root"),
        ("mkdir x", "must begin with a slash"),
        ("symlink x:/first", "first is made by rules, line 1 (mkdir /first), too"),
        ("selinux absent", "cannot read"),
        ("selinux fc", "fc, line 2: expression /b(: unclosed group"),
    ] {
        let error = options(&format!("mkdir /first\n{rule}\n"), home.path()).unwrap_err();
        assert!(error.starts_with("rules, line 2 (") && error.contains(defect), "{rule}: {error}");
    }
    for (rules, defect) in [
        ("symlink a:/a\n", "the symbolic link a leads back to itself"),
        ("symlink /b:/a\nsymlink c/../a:/b\n", "leads back to itself"),
        ("symlink a/x:/a\n", "leads back to itself"),
        ("add file:/x\nmkdir /x/y\n", "x is an added file"),
        ("symlink z:/x\nadd file:/x/y/z\n", "x is an added symbolic link"),
    ] {
        let error = options(rules, home.path()).unwrap_err();
        assert!(error.contains(defect), "{rules}: {error}");
    }
    assert!(options("symlink b:/a\nsymlink c:/b\nsymlink ../../x:/d\n", home.path()).is_ok());
}

#[test]
fn rules_that_the_tree_contradicts_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let root = tree(home.path());
    let archive = home.path().join("archive");
    tar(&root, &archive);
    fs::write(home.path().join("file"), "x").unwrap();
    for (rules, defect) in [
        ("add file:/etc\n", "etc is a directory in the source"),
        ("mkdir /etc/passwd\n", "etc/passwd is a file in the source, no directory"),
        ("mkdir /lib\n", "lib is a symbolic link in the source"),
        (
            "add file:/lib/x\n",
            "lib is a symbolic link, and nothing can be below it: name the path behind it, which it has as usr/lib",
        ),
        ("add file:/etc/passwd/x\n", "etc/passwd is a file, and nothing can be below it"),
        (
            "add file:/etc/passwd\n",
            "etc/passwd- is another name of etc/passwd, which this rule replaces",
        ),
    ] {
        let options = options(rules, home.path()).unwrap();
        for source in [&root, &archive] {
            let error = read_path(source, &options).unwrap_err();
            assert!(error.starts_with("rules, line 1 (") && error.contains(defect), "{error}");
        }
    }
    let both = options("add file:/etc/passwd\nadd file:/etc/passwd-\n", home.path()).unwrap();
    let (all, _) = read_path(&archive, &both).unwrap();
    assert_eq!(of(&all, "etc/passwd-").contents(), b"x");
    // The other name has the contents then.
    let first = options("exclude /etc/passwd\nadd file:/etc/passwd\n", home.path()).unwrap();
    let (all, _) = read_path(&root, &first).unwrap();
    assert_eq!(of(&all, "etc/passwd-").contents(), b"root");
    assert_eq!(of(&all, "etc/passwd").contents(), b"x");
}

#[test]
fn a_file_that_changes_after_its_rule_was_read_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let root = tree(home.path());
    fs::write(home.path().join("file"), "x").unwrap();
    let options = options("add file:/new\n", home.path()).unwrap();
    fs::write(home.path().join("file"), "longer").unwrap();
    let error = read_path(&root, &options).unwrap_err();
    assert!(error.contains("changed while the image was built"), "{error}");
    fs::remove_file(home.path().join("file")).unwrap();
    let error = read_path(&root, &options).unwrap_err();
    assert!(error.contains("cannot open"), "{error}");
}

#[test]
fn a_file_that_has_more_than_its_size_says_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let error = options("add /proc/version:/version\n", home.path()).unwrap_err();
    assert!(error.contains("size is 0") && error.contains("add a copy"), "{error}");
    fs::write(home.path().join("empty"), "").unwrap();
    let options = options("add empty:/empty\n", home.path()).unwrap();
    let (all, _) = read_path(&tree(home.path()), &options).unwrap();
    assert_eq!(of(&all, "empty").contents(), b"");
}

#[test]
fn an_archive_without_a_root_gets_one_that_rules_change() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tar");
    fs::write(&path, Archive::default().file("f", b"data").end()).unwrap();
    let options = options("owner 3:4\nadd tar:/f\n", home.path()).unwrap();
    let (all, _) = read_path(&path, &options).unwrap();
    assert_eq!(paths(&all), ["", "f"]);
    assert_eq!((all[0].entry.metadata.uid, all[0].entry.metadata.mode), (3, 0o755));
    assert_eq!(all[0].entry.metadata.mtime.seconds, 77);
}

#[test]
fn so_many_patterns_as_there_are_lines_in_a_list_are_compared() {
    let patterns = (0..100_000)
        .map(|number| (undercroft_source::Choice::Exclude, format!("/d*/{number:06}-*.[ch]")));
    let kept = [(undercroft_source::Choice::Include, "/dir/070000-kept.c".to_owned())];
    let set = undercroft_source::Exclude::in_order(patterns.chain(kept)).unwrap();
    for (path, left_out) in [
        (&b"dir/000000-a.c"[..], true),
        (b"dir/099999-a.h", true),
        (b"dir/070000-a.c", true),
        (b"dir/070000-kept.c", false),
        (b"dir/100000-a.c", false),
    ] {
        assert_eq!(set.matches_within(path), left_out, "{}", path.escape_ascii());
    }
}
