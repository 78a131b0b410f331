//! The exports of a server of network disks.

use crate::{report, text};
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use undercroft_nbd::client::{self, ExportInfo};
use undercroft_nbd::protocol::{TransmissionFlags, Uri};

/// An export, as its server describes it.
#[derive(Serialize)]
struct Export {
    name: String,
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections_may_be_several: Option<bool>,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
}

/// All of them.
#[derive(Serialize)]
struct Exports {
    exports: Vec<Export>,
}

/// Lists the exports of the server of `uri`, if that names none and the server has others than the
/// unnamed one; whether it did.
pub(super) fn list(uri: &str, json: bool, out: &mut dyn Write) -> Result<bool> {
    let uri = Uri::parse(uri)?;
    if !uri.export.is_empty() {
        return Ok(false);
    }
    let found = client::list(&uri)?;
    if found.iter().all(|export| export.name.is_empty()) {
        return Ok(false);
    }
    let exports = found.into_iter().map(|info| export(&uri, info)).collect();
    let exports = Exports { exports };
    if json {
        report::json_line(out, &exports)?;
    } else {
        for export in &exports.exports {
            print(export, out)?;
        }
    }
    Ok(true)
}

fn export(uri: &Uri, info: ExportInfo) -> Export {
    let ExportInfo { name, description, export, .. } = info;
    let has = |flag| export.map(|export| export.flags.contains(flag));
    Export {
        uri: Uri { export: name.clone(), ..uri.clone() }.to_string(),
        name,
        bytes: export.map(|export| export.size),
        read_only: has(TransmissionFlags::READ_ONLY),
        connections_may_be_several: has(TransmissionFlags::CAN_MULTI_CONN),
        description,
    }
}

fn print(export: &Export, out: &mut dyn Write) -> Result<()> {
    write!(out, "{}", export.uri)?;
    match export.bytes {
        Some(bytes) => write!(out, "  {}", text::bytes(bytes))?,
        None => write!(out, "  cannot be opened")?,
    }
    if export.read_only == Some(true) {
        write!(out, "  read-only")?;
    }
    if !export.description.is_empty() {
        write!(out, "  {}", export.description.escape_debug())?;
    }
    writeln!(out)?;
    Ok(())
}
