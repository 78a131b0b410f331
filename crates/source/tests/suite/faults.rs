//! Wrong archives: each fault is an error with its place, its entry and its cause.

use crate::archive::{Archive, header, seal};
use crate::collect::read_bytes;
use undercroft_source::{Exclude, Options};

fn refused(bytes: &[u8], parts: &[&str]) {
    refused_with(&Options::default(), bytes, parts);
}

fn refused_with(options: &Options, bytes: &[u8], parts: &[&str]) {
    let error = read_bytes(bytes, options).expect_err(parts[0]);
    assert!(error.starts_with("test.tar: at byte "), "{error}");
    for part in parts {
        assert!(error.contains(part), "{error:?} has no {part:?}");
    }
}

fn strict() -> Options {
    Options { strict: true, ..Options::default() }
}

/// An archive with a good entry before, so that faults are not at byte 0.
fn archive() -> Archive {
    Archive::default().file("good", b"good")
}

#[test]
fn truncation_is_told_wherever_it_happens() {
    let whole = archive().file("cut", &[1; 2000]).end();
    refused(&whole[..0], &["byte 0:", "truncated", "zero blocks"]);
    refused(&whole[..100], &["byte 100:", "truncated", "inside a header"]);
    refused_with(&strict(), &whole[..1024], &["byte 1024:", "truncated", "zero blocks"]);
    refused(&whole[..2500], &["byte 2500, entry \"cut\"", "truncated", "inside a file"]);
    let long_name = archive().entry("L", b'L', &[b'n'; 600]).bytes;
    refused(&long_name[..1600], &["byte 1600:", "truncated", "extended header"]);
}

#[test]
fn every_cut_of_an_archive_is_an_error() {
    let whole = archive().pax(&[("path", b"long")]).file("x", &[1; 600]).file("y", b"").bytes;
    for length in 0..whole.len() {
        assert!(read_bytes(&whole[..length], &strict()).is_err(), "{length}");
        // Behind the first entry, and behind the last but one.
        let between = [1024, whole.len() - 512].contains(&length);
        let lenient = read_bytes(&whole[..length], &Options::default());
        assert_eq!(lenient.is_ok(), between, "{length}");
    }
}

#[test]
fn damaged_headers_are_refused() {
    let mut sum = header(b"file", b'0', 0);
    sum[0] ^= 1;
    refused(&archive().raw(&sum).end(), &["byte 1024:", "checksum", "damaged"]);
    refused(b"This is no archive at all.".repeat(30).as_slice(), &["byte 0:", "chksum"]);
    let mut size = header(b"file", b'0', 0);
    size[124..136].copy_from_slice(b"12345x\0\0\0\0\0\0");
    refused(&archive().raw(&seal(size)).end(), &["byte 1024", "field size", "12345x"]);
    let mut owner = header(b"file", b'0', 0);
    owner[108..116].copy_from_slice(&[0xff; 8]);
    refused(&archive().raw(&seal(owner)).end(), &["entry \"file\"", "field uid"]);
    let mut huge = header(b"file", b'0', 0);
    huge[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0x7f, 255, 255, 255, 255, 255, 255, 255]);
    refused(&archive().raw(&seal(huge)).end(), &["truncated"]);
    let lone = archive().raw(&[0; 512]).file("x", b"").end();
    refused_with(&strict(), &lone, &["byte 1024:", "lone zero block"]);
}

#[test]
fn types_of_entries_that_cannot_be_packed_are_named_with_a_remedy() {
    for (entry_type, parts) in [
        (b'N', ["type 'N'", "old versions of GNU tar", "unpack the archive"]),
        (b'A', ["type 'A'", "access control list of Solaris", "without -p"]),
        (b'E', ["type 'E'", "attributes of Solaris", "without -@"]),
        (b'I', ["type 'I'", "star", "full dump"]),
        (b'Q', ["type 'Q'", "not supported", "--format=pax"]),
        (0xc3, ["type '\\xc3'", "not supported", "--format=pax"]),
    ] {
        let bytes = archive().entry("odd", entry_type, b"data").end();
        refused(&bytes, &["byte 1024, entry \"odd\"", parts[0], parts[1], parts[2]]);
    }
    let bytes = archive().entry("rest", b'M', b"data").end();
    refused(&bytes, &["entry \"rest\"", "begins in the volume before", "--multi-volume"]);
}

#[test]
fn names_that_cannot_be_packed_are_refused() {
    let name = |name: &str| archive().file(name, b"").end();
    refused(&name("a/../b"), &["byte 1024, entry \"a/../b\"", "\"..\" component"]);
    refused(&name(".."), &["\"..\" component"]);
    refused(&name("/etc/passwd"), &["entry \"/etc/passwd\"", "absolute"]);
    refused(&name(""), &["name is empty"]);
    let long = "x".repeat(256);
    let pax = |path: &[u8]| archive().pax(&[("path", path)]).file("f", b"").end();
    refused(&pax(long.as_bytes()), &["256 bytes, the most is 255"]);
    refused(&pax("y/".repeat(9000).as_bytes()), &["17999 bytes, the most is 16384"]);
    refused(&pax(b"a\0b"), &["zero byte", "a\\x00b"]);
}

#[test]
fn the_root_is_a_directory() {
    let link = archive().link("./x/..", b'2', "target").end();
    refused(&link, &["\"..\""]);
    refused(&archive().link(".", b'2', "target").end(), &["root of the archive is no directory"]);
}

#[test]
fn links_need_a_target() {
    let link = |target| archive().directory("dir").link("link", b'1', target).end();
    refused(&link("missing"), &["entry \"link\"", "hard link to \"missing\"", "before it"]);
    refused(&link("link"), &["hard link to \"link\"", "before it"]);
    refused(&link("dir"), &["hard link to the directory \"dir\""]);
    refused(&link("./"), &["hard link to the directory"]);
    refused(&link("../good"), &["\"..\""]);
    refused(&link("/good"), &["absolute"]);
    refused(&link(""), &["empty"]);
    let excluded = Options { exclude: Exclude::new(["good"]).unwrap(), ..Options::default() };
    let parts = ["hard link to \"good\"", "excluded", "keep its target"];
    refused_with(&excluded, &link("good"), &parts);
    let symlink = |target: &[u8]| archive().pax(&[("linkpath", target)]).link("s", b'2', "x").end();
    refused(&symlink(&[b't'; 1024]), &["1024 bytes, it must have 1 to 1023"]);
    refused(&symlink(b"a\0b"), &["zero byte"]);
    refused(&archive().link("s", b'2', "").end(), &["target has 0 bytes"]);
}

#[test]
fn a_path_has_one_meaning() {
    refused(&archive().directory("./good").end(), &["entry \"./good\"", "entry at byte 0"]);
    refused(&archive().link("good", b'1', "good").end(), &["entry \"good\"", "link to itself"]);
    let below = archive().file("good/child", b"").end();
    refused(&below, &["entry \"good/child\"", "parent \"good\"", "at byte 0"]);
    let through = archive().link("s", b'2', "good").file("s/a/b", b"").end();
    refused(&through, &["parent \"good\"", "no directory", "at byte 0"]);
    let implicit = archive().file("dir/x", b"").file("dir", b"").end();
    refused(&implicit, &["entry \"dir\"", "already used", "at byte 1024"]);
}

#[test]
fn extended_headers_are_checked_and_bounded() {
    let malformed = archive().entry("x", b'x', b"9 path\n").file("f", b"").end();
    refused(&malformed, &["byte 1024:", "pax header is malformed at its byte 0"]);
    let value = archive().pax(&[("uid", b"one")]).file("f", b"").end();
    refused(&value, &["pax record uid", "one"]);
    refused(&archive().pax(&[("path", b"p")]).end(), &["followed by the end"]);
    let claimed = archive().raw(&header(b"x", b'x', 1 << 32)).end();
    refused(&claimed, &["4294967296 bytes", "the most that is read is 16777216"]);
    let mut many = archive();
    for _ in 0..20 {
        many = many.pax(&[("comment", &vec![b'c'; 1 << 20])]);
    }
    refused(&many.file("f", b"").end(), &["the most that is read is 16777216"]);
    let mut global = archive();
    for _ in 0..40 {
        global = global.entry("g", b'g', &crate::archive::record("comment", &[b'c'; 2000]));
    }
    refused(&global.file("f", b"").end(), &["the most that is read is 65536"]);
}

#[test]
fn attributes_that_cannot_be_kept_are_refused() {
    let with = |key: &str, value: &[u8]| archive().pax(&[(key, value)]).file("f", b"").end();
    refused(
        &with("SCHILY.acl.access", b"user:joe:rwx"),
        &["user:joe:rwx", "entry \"f\"", "--xattrs"],
    );
    refused_with(&strict(), &with("SCHILY.xattr.foo", b""), &["\"foo\"", "none of the namespaces"]);
    refused_with(&strict(), &with("SCHILY.acl.ace", b"everyone@:r:allow"), &["SCHILY.acl.ace"]);
    let long_name = format!("SCHILY.xattr.user.{}", "n".repeat(300));
    refused(&with(&long_name, b""), &["305 bytes of name"]);
    refused(&with("SCHILY.xattr.user.v", &[0; 65_537]), &["65537 bytes of value"]);
    refused(&with("LIBARCHIVE.xattr.user.v", b"*"), &["LIBARCHIVE.xattr.user.v"]);
}

#[test]
fn sparse_maps_are_checked() {
    let map = |map: &[u8]| {
        let records: [(&str, &[u8]); 2] = [("GNU.sparse.size", b"1000"), ("GNU.sparse.map", map)];
        archive().pax(&records).file("s", b"12345678").end()
    };
    refused(&map(b"0,4,2,4"), &["range 1", "overlaps"]);
    refused(&map(b"0,4,998,4"), &["range 1", "beyond the end"]);
    refused(&map(b"0,4"), &["not as long as the data"]);
    refused(&map(b"0,4,5"), &["GNU.sparse.map"]);
    let many = "1,1,".repeat((1 << 20) + 1);
    refused(&map(many.as_bytes()), &["more than 1048576"]);
    let text: [(&str, &[u8]); 3] =
        [("GNU.sparse.major", b"1"), ("GNU.sparse.minor", b"0"), ("GNU.sparse.realsize", b"1000")];
    let in_data = |map: &[u8]| {
        let mut data = map.to_vec();
        data.resize(512, 0);
        archive().pax(&text).file("s", &data).end()
    };
    refused(&in_data(b"1\nx\n"), &["map is no number"]);
    refused(&in_data(&[b'1'; 512]), &["map is no number"]);
    let unfinished = [&b"400\n"[..], &b"1\n".repeat(254)].concat();
    refused(&in_data(&unfinished), &["ends inside the map"]);
    refused(&in_data(b"99999999\n"), &["more than 1048576"]);
    let unknown = [("GNU.sparse.major", &b"2"[..])];
    refused(&archive().pax(&unknown).file("s", b"").end(), &["version is unknown"]);
    refused(&archive().pax(&[("GNU.sparse.map", b"")]).file("s", b"").end(), &["size of the file"]);
}

#[test]
fn an_endless_gnu_sparse_map_is_bounded() {
    let mut sparse = header(b"s", b'S', 0);
    sparse[257..265].copy_from_slice(b"ustar  \0");
    sparse[482] = 1;
    let mut block = [0u8; 512];
    for range in block[..504].chunks_exact_mut(24) {
        range.copy_from_slice(b"00000000000\x0000000000000\0");
    }
    block[504] = 1;
    let mut endless = archive().raw(&seal(sparse));
    endless.bytes.extend(block.repeat((1 << 20) / 21 + 2));
    refused(&endless.end(), &["more than 1048576"]);
}
