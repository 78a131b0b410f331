//! What to do about an error of the libraries: they say what is wrong, and know no commands and
//! options.

use std::error::Error;
use undercroft_image::pack::PackError;

/// The remedy for one of the causes of an error.
pub(crate) fn of(cause: &(dyn Error + 'static)) -> Option<String> {
    let pack = cause.downcast_ref::<PackError>().map(of_pack);
    pack.flatten()
}

fn of_pack(error: &PackError) -> Option<String> {
    Some(match error {
        PackError::Exists(_) => "use --force to replace it".into(),
        PackError::Holds { .. } => "use --force to overwrite it".into(),
        _ => return None,
    })
}
