//! What a key must be like, beyond being sound.

use std::{borrow::Cow, fmt, ops::RangeInclusive, sync::Arc};

use super::{IdempotencyKey, InvalidKey, LONGEST, Reason};

/// What keys a service takes (draft-07, section 2.2: the owner of the resource defines what makes a key unique).
///
/// By default 1 to 255 characters of any kind. A key that breaks the policy is answered with 400, and the answer says what the policy
/// is: a service that publishes it spares its clients from finding out (draft-07, section 2.5.2).
///
/// # Examples
///
/// ```
/// use idempotent_runtime::http::KeyPolicy;
///
/// let policy = KeyPolicy::new().length(16..=64).refuse_sequential();
/// assert_eq!(policy.to_string(), "16 to 64 characters, not sequential");
/// ```
#[derive(Clone, Debug)]
pub struct KeyPolicy {
    length: RangeInclusive<usize>,
    rules: Vec<Rule>,
}

impl KeyPolicy {
    /// Takes any sound key.
    #[must_use]
    pub fn new() -> Self {
        Self {
            length: 1..=LONGEST,
            rules: Vec::new(),
        }
    }

    /// Takes only keys of that many characters. More than 255 is not possible, whatever the range says.
    ///
    /// # Panics
    ///
    /// When no key can have such a length.
    #[must_use]
    #[track_caller]
    pub fn length(mut self, characters: RangeInclusive<usize>) -> Self {
        let length = *characters.start().max(&1)..=*characters.end().min(&LONGEST);
        assert!(
            !length.is_empty(),
            "no key has {} to {} characters: they have 1 to {LONGEST}",
            characters.start(),
            characters.end(),
        );
        self.length = length;
        self
    }

    /// Takes only UUIDs of 36 characters, of any version, in either case, but neither nil nor max, which are what an unset field holds.
    ///
    /// Equal UUIDs in different case are different keys: a retry must repeat the key as it was.
    #[must_use]
    pub fn uuid(self) -> Self {
        self.with(Rule::Uuid)
    }

    /// Takes only ULIDs of 26 characters, in either case, but not the nil one, which is what an unset field holds.
    ///
    /// Equal ULIDs in different case are different keys: a retry must repeat the key as it was.
    #[must_use]
    pub fn ulid(self) -> Self {
        self.with(Rule::Ulid)
    }

    /// Refuses keys that look as if the next one could be guessed: numbers of up to 19 digits, a word and a number such as
    /// `order-42`, a row of characters such as `abcdef`, and those with fewer than four different characters.
    ///
    /// Two clients that count from 1 meet at the same keys, and so does one that lost its counter. It is a guess, because it looks at one
    /// key at a time; random keys of 20 characters or more pass it.
    #[must_use]
    pub fn refuse_sequential(self) -> Self {
        self.with(Rule::NotSequential)
    }

    /// Takes only keys for which `holds` is true. `what` says which these are, for the sentence *expected a key of …*.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::http::KeyPolicy;
    /// let policy = KeyPolicy::new().require("beginning with `web-` or `app-`", |key| {
    ///     key.starts_with("web-") || key.starts_with("app-")
    /// });
    /// ```
    #[must_use]
    pub fn require(
        self,
        what: impl Into<Cow<'static, str>>,
        holds: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(Rule::Custom {
            what: what.into(),
            holds: Arc::new(holds),
        })
    }
}

impl KeyPolicy {
    /// Checks a key.
    ///
    /// # Errors
    ///
    /// When it breaks the policy; the error says what the policy is.
    pub fn check(&self, key: &IdempotencyKey) -> Result<(), InvalidKey> {
        let key = key.as_str();
        if key.len() > *self.length.end() {
            return Err(InvalidKey::too_long(key.len(), *self.length.end()));
        }
        if key.len() < *self.length.start() {
            return Err(InvalidKey::new(
                Reason::TooShort,
                format!(
                    "the key has {} characters, and at least {} are required",
                    key.len(),
                    self.length.start()
                ),
            ));
        }
        if self.rules.iter().all(|rule| rule.allows(key)) {
            return Ok(());
        }
        Err(InvalidKey::new(
            Reason::Policy,
            format!("expected a key of {self}"),
        ))
    }

    /// How many characters a key may have.
    #[must_use]
    pub fn characters(&self) -> RangeInclusive<usize> {
        self.length.clone()
    }

    /// The regular expression of the keys, without anchors, where a rule has one.
    #[must_use]
    pub fn pattern(&self) -> Option<&'static str> {
        self.rules.iter().find_map(Rule::pattern)
    }

    /// A key that it takes, where a usual form is among them.
    #[must_use]
    pub fn example(&self) -> Option<&'static str> {
        const FORMS: [&str; 2] = [
            "8e03978e-40d5-43e8-bc93-6894a57f9324",
            "01JD6X2KTW8QF4ZB7NHG3M5VRC",
        ];
        FORMS.into_iter().find(|form| self.allows(form))
    }

    fn allows(&self, key: &str) -> bool {
        self.length.contains(&key.len()) && self.rules.iter().all(|rule| rule.allows(key))
    }

    fn with(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }
}

impl Default for KeyPolicy {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows what it takes, such as *1 to 255 characters, a UUID*.
impl fmt::Display for KeyPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shortest, longest) = (self.length.start(), self.length.end());
        if shortest == longest {
            write!(formatter, "{longest} characters")?;
        } else {
            write!(formatter, "{shortest} to {longest} characters")?;
        }
        self.rules
            .iter()
            .try_for_each(|rule| write!(formatter, ", {rule}"))
    }
}

#[derive(Clone)]
enum Rule {
    Uuid,
    Ulid,
    NotSequential,
    Custom {
        what: Cow<'static, str>,
        holds: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    },
}

impl Rule {
    fn allows(&self, key: &str) -> bool {
        match self {
            Rule::Uuid => is_uuid(key),
            Rule::Ulid => is_ulid(key),
            Rule::NotSequential => !is_sequential(key),
            Rule::Custom { holds, .. } => holds(key),
        }
    }

    fn pattern(&self) -> Option<&'static str> {
        match self {
            Rule::Uuid => {
                Some("[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
            }
            Rule::Ulid => Some("[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}"),
            Rule::NotSequential | Rule::Custom { .. } => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Rule::Uuid => "a UUID that is neither nil nor max",
            Rule::Ulid => "a ULID that is not nil",
            Rule::NotSequential => "not sequential",
            Rule::Custom { what, .. } => what,
        })
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Rule({self})")
    }
}

fn is_uuid(key: &str) -> bool {
    let in_place = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let of_one_digit = |digit: u8| {
        key.bytes()
            .all(|byte| byte == b'-' || byte.eq_ignore_ascii_case(&digit))
    };
    key.len() == 36
        && key.bytes().enumerate().all(in_place)
        && !of_one_digit(b'0')
        && !of_one_digit(b'f')
}

/// Crockford's digits leave out I, L, O and U; the first one holds three bits of the 128.
fn is_ulid(key: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() && !b"ILOUilou".contains(&byte);
    key.len() == 26
        && key.bytes().all(is_digit)
        && matches!(key.as_bytes()[0], b'0'..=b'7')
        && key.bytes().any(|byte| byte != b'0')
}

fn is_sequential(key: &str) -> bool {
    let bytes = key.as_bytes();
    let different = bytes
        .iter()
        .enumerate()
        .filter(|(at, byte)| !bytes[..*at].contains(byte))
        .take(4)
        .count();
    let in_a_row = |step: fn(u8) -> u8| bytes.windows(2).all(|pair| step(pair[0]) == pair[1]);
    different < 4
        || in_a_row(|byte| byte.wrapping_add(1))
        || in_a_row(|byte| byte.wrapping_sub(1))
        || is_counted(key)
}

/// Whether it is a number that 64 bits hold, by itself or after a word and a separator.
///
/// A word is of one case: in a random key of mixed case, one separator followed by digits alone is no rarity.
fn is_counted(key: &str) -> bool {
    const MOST_DIGITS: usize = 19;
    let word = key.trim_end_matches(|character: char| character.is_ascii_digit());
    let digits = key.len() - word.len();
    let is_separator = |byte: u8| byte.is_ascii_punctuation() || byte == b' ';
    let of_case =
        |case: fn(&u8) -> bool| word.bytes().all(|byte| case(&byte) || is_separator(byte));
    (1..=MOST_DIGITS).contains(&digits)
        && word.bytes().last().is_none_or(is_separator)
        && (of_case(u8::is_ascii_lowercase) || of_case(u8::is_ascii_uppercase))
}

#[cfg(test)]
mod tests;
