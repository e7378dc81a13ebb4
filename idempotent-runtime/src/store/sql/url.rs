//! The server that a URL is for: the drivers take that of any other one for theirs, and then no
//! server of theirs answers there.

use crate::store::{StoreError, StoreErrorKind};

/// Refuses a URL that names another server than the one that has these two names. The driver itself
/// refuses a text that is no URL at all.
pub(crate) fn is_for(names: [&str; 2], url: &str, doing: &'static str) -> Result<(), StoreError> {
    let Some((scheme, _)) = url.split_once("://") else {
        return Ok(());
    };
    if names.iter().any(|name| scheme.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let [name, other] = names;
    let source = format!(
        "the URL begins with `{scheme}://`: that of this server begins with `{name}://` or `{other}://`"
    );
    Err(StoreError::new(StoreErrorKind::Configuration, doing).with_source(source))
}
