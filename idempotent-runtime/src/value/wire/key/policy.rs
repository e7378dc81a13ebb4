//! The rules for a key, beyond being sound.

mod rule;

use std::{borrow::Cow, fmt, ops::RangeInclusive, sync::Arc};

use self::rule::Rule;
use super::{IdempotencyKey, InvalidHeader, LONGEST, Reason};

/// The rules for the keys that a service takes (draft-07, section 2.2: the owner of the resource
/// defines what makes a key unique).
///
/// By default it takes 1 to 255 characters of any kind. A key that breaks the policy is answered
/// with 400, and the answer says what the policy is. A service that publishes its policy spares its
/// clients from finding out (draft-07, section 2.5.2).
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

    /// Takes only keys of that many characters. More than 255 is not possible, whatever the range
    /// says.
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

    /// Takes only UUIDs of 36 characters, of any version, in either case, except nil and max. Those
    /// two are what an unset field holds.
    ///
    /// Equal UUIDs in different case are different keys: a retry must repeat the key as it was.
    #[must_use]
    pub fn uuid(self) -> Self {
        self.with(Rule::Uuid)
    }

    /// Takes only ULIDs of 26 characters, in either case, except the nil one, which is what an
    /// unset field holds.
    ///
    /// Equal ULIDs in different case are different keys: a retry must repeat the key as it was.
    #[must_use]
    pub fn ulid(self) -> Self {
        self.with(Rule::Ulid)
    }

    /// Refuses keys that look as if the next one could be guessed. These are numbers of up to 19
    /// digits, a word and a number such as `order-42`, a row of characters such as `abcdef`, and
    /// keys with fewer than four different characters.
    ///
    /// Two clients that count from 1 meet at the same keys. A client that lost its counter meets
    /// its own old keys. The check is a guess, because it looks at one key at a time; random keys
    /// of 20 characters or more pass it.
    #[must_use]
    pub fn refuse_sequential(self) -> Self {
        self.with(Rule::NotSequential)
    }

    /// Takes only keys for which `holds` is true. `what` says which these are, for the sentence
    /// *expected a key of …*.
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
    pub fn check(&self, key: &IdempotencyKey) -> Result<(), InvalidHeader> {
        let key = key.as_str();
        if key.len() > *self.length.end() {
            return Err(InvalidHeader::too_long(key.len(), *self.length.end()));
        }
        if key.len() < *self.length.start() {
            return Err(InvalidHeader::new(
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
        Err(InvalidHeader::new(
            Reason::Policy,
            format!("expected a key of {self}"),
        ))
    }

    /// How many characters a key may have.
    #[must_use]
    pub fn characters(&self) -> RangeInclusive<usize> {
        self.length.clone()
    }

    /// The regular expression of the keys, without anchors, if a rule has one.
    #[must_use]
    pub fn pattern(&self) -> Option<&'static str> {
        self.rules.iter().find_map(Rule::pattern)
    }

    /// A key that it takes, if a usual form is among them.
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

#[cfg(test)]
mod tests;
