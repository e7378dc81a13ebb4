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

/// Texts that no output may show.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    /// The same text without the secrets, wherever they stand in it.
    pub(crate) fn hide(&self, text: &str) -> String {
        let hide = |text: String, secret: &String| text.replace(secret, "***");
        self.0.iter().fold(text.to_owned(), hide)
    }
}

impl Location {
    /// Reads what `--store` says, or the environment.
    ///
    /// A password among the arguments is refused: every user of the machine can list them.
    pub(crate) fn read(said: &str, is_argument: bool) -> Result<Self, Failure> {
        let (location, is_argument) = match said.strip_prefix('@') {
            None => (Self(said.trim().to_owned()), is_argument),
            Some(file) => {
                let text = fs::read_to_string(file).map_err(|error| {
                    let why = format!("the URL of the store cannot be read from {file}: {error}");
                    Failure::Usage(why)
                })?;
                (Self(text.trim().to_owned()), false)
            }
        };
        if location.0.is_empty() {
            return Err(Failure::Usage("the URL of the store is empty".to_owned()));
        }
        match is_argument && !location.secrets().0.is_empty() {
            false => Ok(location),
            true => Err(Failure::Usage(
                "a password among the arguments can be read by every user of the machine: \
                 put the URL into IDEMPOTENT_STORE, or into a file, and say `--store @file`"
                    .to_owned(),
            )),
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.0
    }

    /// The passwords in the URL, as they stand there and as they are meant.
    pub(crate) fn secrets(&self) -> Secrets {
        let mut secrets: Vec<_> = [self.password()].into_iter().flatten().collect();
        let (_, query) = self.0.split_once('?').unwrap_or_default();
        for parameter in query.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or_default();
            if name.to_ascii_lowercase().contains("pass") && !value.is_empty() {
                secrets.push(value);
            }
        }
        let decoded: Vec<_> = secrets.iter().map(|it| decoded(it)).collect();
        let as_they_stand = secrets.into_iter().map(str::to_owned);
        Secrets(as_they_stand.chain(decoded).collect())
    }

    /// The password of the user.
    fn password(&self) -> Option<&str> {
        let (scheme, rest) = self.0.split_once(':')?;
        if scheme.eq_ignore_ascii_case("sqlite") || scheme.contains(['/', '.', '\\']) {
            return None;
        }
        let rest = rest.trim_start_matches('/');
        let authority = rest.split(['/', '?', '#']).next()?;
        // A password may hold an `@` that is not escaped: the last one ends it.
        let (user, _) = authority
            .rsplit_once('@')
            .or_else(|| rest.rsplit_once('@'))?;
        let (_, password) = user.split_once(':')?;
        (!password.is_empty()).then_some(password)
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
            ("mysql://db/shop?user=app&password=s3cret", Some("s3cret")),
            ("redis+unix:///run/redis?pass=s3cret", Some("s3cret")),
            ("postgres:app:s3cret@db", Some("s3cret")),
        ] {
            let location = Location(url.to_owned());
            assert_eq!(
                !location.secrets().0.is_empty(),
                password.is_some(),
                "{url}"
            );
            if let Some(password) = password {
                let hidden = location.secrets().hide(&format!("no way to {url}"));
                assert!(!hidden.contains(password), "{hidden}");
                assert!(Location::read(url, true).is_err(), "{url}");
            }
            assert!(Location::read(url, false).is_ok(), "{url}");
        }
        let escaped = Location("mysql://app:s%40cret@db/shop".to_owned());
        assert_eq!(
            escaped.secrets().hide("wrong: s@cret, s%40cret"),
            "wrong: ***, ***"
        );
    }
}
