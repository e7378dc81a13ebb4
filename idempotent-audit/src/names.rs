//! The names of the tables, triggers and functions.

use idempotent_runtime::__audit::TablePrefix;

use crate::source::Source;

/// The names behind a prefix, and how the trail is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) prefix: TablePrefix,
    /// Whether the bytes of outcomes are kept beside the entries.
    pub(crate) keeps_outcomes: bool,
    /// The users of the application, where a second person has to approve the acts of others.
    pub(crate) four_eyes: Option<Vec<String>>,
    /// Stands before the name of a table or a function: its schema and a dot, where there is one.
    pub(crate) place: String,
}

impl Names {
    /// The name of a trigger or an index, which is in the schema of its table.
    pub(crate) fn plain(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The name of a table or a function.
    pub(crate) fn placed(&self, name: &str) -> String {
        format!("{}{}{name}", self.place, self.prefix)
    }

    /// The table of a source.
    pub(crate) fn of(&self, source: Source) -> String {
        self.placed(source.table())
    }

    pub(crate) fn entries(&self) -> String {
        self.placed("audit")
    }

    pub(crate) fn seals(&self) -> String {
        self.placed("audit_seals")
    }

    pub(crate) fn outcomes(&self) -> String {
        self.placed("audit_outcomes")
    }

    pub(crate) fn versions(&self) -> String {
        self.placed("audit_schema")
    }

    /// The trigger that does something for a source.
    pub(crate) fn named(&self, source: Source, what: &str) -> String {
        self.plain(&format!("audit_{}_{what}", source.name()))
    }

    /// Whether a user of the database is one of the application's, who acts for many people.
    pub(crate) fn is_of_application(&self, user: &str) -> bool {
        let name = |of: &String| {
            user == of
                || user
                    .strip_prefix(of.as_str())
                    .is_some_and(|it| it.starts_with('@'))
        };
        self.four_eyes.iter().flatten().any(name)
    }

    /// The same names, where outcomes are kept or not.
    pub(crate) fn keeping(&self, keeps_outcomes: bool) -> Self {
        Self {
            keeps_outcomes,
            ..self.clone()
        }
    }

    /// The same names in this place.
    pub(crate) fn at(&self, place: String) -> Self {
        Self {
            place,
            ..self.clone()
        }
    }
}
