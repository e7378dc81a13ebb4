//! The server that a URL is for, and how a log names it.
//!
//! The drivers take the URL of any other server for theirs, and then no server of theirs answers
//! there.

use std::path::PathBuf;

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

/// The place of a database as a log names it.
pub(crate) fn place(
    user: &str,
    (host, port): (&str, u16),
    socket: Option<&PathBuf>,
    database: Option<&str>,
) -> String {
    let server = match socket {
        Some(socket) => socket.display().to_string(),
        None => format!("{host}:{port}"),
    };
    format!("{user}@{server}/{}", database.unwrap_or(user))
}
