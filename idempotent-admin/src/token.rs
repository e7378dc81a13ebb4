//! Tokens of forms: each is for one person, one act, one record as it was seen, and two hours at
//! most.

use std::time::{Duration, SystemTime};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// How long an hour of a token is.
const HOUR: u64 = 3_600;

/// The secret of a page.
#[derive(Clone)]
pub(crate) struct Secret([u8; 32]);

/// The subject of a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) person: &'a str,
    pub(crate) act: &'a str,
    pub(crate) record: &'a str,
    pub(crate) version: &'a str,
}

impl Secret {
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self(*secret)
    }

    /// Returns a secret that ends with the process.
    pub(crate) fn random() -> Self {
        Self(rand::random())
    }

    /// The token of a form that is made now.
    pub(crate) fn token(&self, subject: Subject<'_>) -> String {
        let code = self.code(subject, hour()).finalize().into_bytes();
        code.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a token is that of a form of this hour or the last one. It takes as long for each.
    pub(crate) fn made(&self, subject: Subject<'_>, token: &str) -> bool {
        let Some(bytes) = from_hex(token) else {
            return false;
        };
        let hours = [hour(), hour().saturating_sub(1)];
        let holds = hours.map(|hour| self.code(subject, hour).verify_slice(&bytes).is_ok());
        holds[0] | holds[1]
    }

    fn code(&self, subject: Subject<'_>, hour: u64) -> Hmac<Sha256> {
        let mut code =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("an HMAC takes a key of any length");
        let Subject {
            person,
            act,
            record,
            version,
        } = subject;
        for part in [person, act, record, version] {
            // The length first: no two subjects are the same bytes.
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part.as_bytes());
        }
        code.update(&hour.to_be_bytes());
        code
    }
}

fn hour() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs() / HOUR
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let is_hex = text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit());
    let byte = |place| u8::from_str_radix(text.get(place..place + 2)?, 16).ok();
    is_hex.then(|| (0..64).step_by(2).map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Subject<'_> = Subject {
        person: "anna",
        act: "settle",
        record: "7",
        version: "8",
    };

    #[test]
    fn a_token_is_for_one_subject_and_two_hours() {
        let secret = Secret::random();
        let token = secret.token(OF);
        assert!(secret.made(OF, &token));
        for other in [
            Subject {
                person: "ben",
                ..OF
            },
            Subject { act: "undo", ..OF },
            Subject { record: "9", ..OF },
            Subject { version: "9", ..OF },
            Subject {
                person: "annas",
                act: "ettle",
                ..OF
            },
        ] {
            assert!(!secret.made(other, &token), "{other:?}");
        }
        assert!(!Secret::random().made(OF, &token), "another page");
        for no_token in ["", "x", &token[1..], &token.replace(|_| true, "é")] {
            assert!(!secret.made(OF, no_token), "{no_token}");
        }
        let of_hour = |hour: u64| {
            let code = secret.code(OF, hour).finalize().into_bytes();
            code.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        assert!(secret.made(OF, &of_hour(hour() - 1)), "the last hour");
        assert!(!secret.made(OF, &of_hour(hour() - 2)), "an older one");
    }
}
