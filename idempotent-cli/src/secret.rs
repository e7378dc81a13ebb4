//! The place of the store, in which a password may stand, and what keeps that out of sight.

use std::fs;

use crate::failure::Failure;

/// The URL of a store. Its `Debug` shows nothing.
pub(crate) struct Location(String);

impl std::fmt::Debug for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Location")
    }
}

impl Location {
    /// Reads what `--store` says, or the environment.
    ///
    /// A password among the arguments is refused: every user of the machine can list them.
    pub(crate) fn read(said: &str, is_argument: bool) -> Result<Self, Failure> {
        let Some(file) = said.strip_prefix('@') else {
            let location = Self(said.to_owned());
            return match location.password() {
                Some(_) if is_argument => Err(Failure::Usage(
                    "a password among the arguments can be read by every user of the machine: \
                     put the URL into IDEMPOTENT_STORE, or into a file, and say `--store @file`"
                        .to_owned(),
                )),
                _ => Ok(location),
            };
        };
        let text = fs::read_to_string(file);
        let text = text.map_err(|error| {
            Failure::Usage(format!(
                "the URL of the store cannot be read from {file}: {error}"
            ))
        })?;
        Ok(Self(text.trim().to_owned()))
    }

    pub(crate) fn url(&self) -> &str {
        &self.0
    }

    /// The password as it stands in the URL.
    fn password(&self) -> Option<&str> {
        let (_, rest) = self.0.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        // A password may hold an `@` that is not escaped: the last one ends it.
        let (user, _) = authority.rsplit_once('@').or_else(|| {
            let (user, _) = rest.rsplit_once('@')?;
            Some((user, ""))
        })?;
        let (_, password) = user.split_once(':')?;
        (!password.is_empty()).then_some(password)
    }

    /// The same text without the password, wherever it stands in it.
    pub(crate) fn hide(&self, text: &str) -> String {
        let Some(password) = self.password() else {
            return text.to_owned();
        };
        let mut hidden = text.replace(password, "***");
        let decoded = decoded(password);
        if decoded != password {
            hidden = hidden.replace(&decoded, "***");
        }
        hidden
    }
}

/// The text that percent signs stand for.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let escaped = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_found_and_hidden() {
        for (url, password) in [
            ("postgres://app:s3cret@db.example.com/shop", Some("s3cret")),
            ("redis://:s3cret@localhost:6379/0", Some("s3cret")),
            ("postgres://app:s3cr/et@db/shop", Some("s3cr/et")),
            ("postgres://app:s3c@ret@db/shop", Some("s3c@ret")),
            ("postgres://app@db/shop", None),
            ("redis://localhost:6379/0", None),
            ("sqlite:payments.db", None),
            ("payments.db", None),
        ] {
            let location = Location(url.to_owned());
            assert_eq!(location.password(), password, "{url}");
            if let Some(password) = password {
                assert!(
                    !location
                        .hide(&format!("no way to {url}"))
                        .contains(password)
                );
                assert!(Location::read(url, true).is_err(), "{url}");
            }
            assert!(Location::read(url, false).is_ok(), "{url}");
        }
        let escaped = Location("mysql://app:s%40cret@db/shop".to_owned());
        assert_eq!(escaped.hide("wrong: s@cret, s%40cret"), "wrong: ***, ***");
    }
}
