//! The tables that are audited, and an entry in terms of their columns.

/// The words of a database for what an entry is made of.
pub(crate) trait Words {
    /// The time in microseconds.
    const NOW: &'static str;

    /// The user who is logged in, whatever the rights under which a trigger runs.
    const USER: &'static str;

    /// Whether two values differ, where one may be NULL.
    fn differs(one: &str, other: &str) -> String;

    /// The SHA-256 of these bytes. SQLite cannot compute it: there it is the bytes themselves,
    /// until the entry is sealed.
    fn hash(bytes: &str) -> String;

    /// The name of a user, without that of a machine; `None` where there are no users.
    fn user_name(user: &str) -> Option<String>;

    /// These bytes in hexadecimal digits.
    fn digits(bytes: &str) -> String;

    /// The digits of the SHA-256 of these bytes, or `-` without one.
    fn digest(bytes: &str) -> String {
        format!("COALESCE({}, '-')", Self::digits(&Self::hash(bytes)))
    }

    /// These values as one text, with a blank between them.
    fn joined(values: &[String]) -> String;

    /// The text that these bytes are.
    fn as_text(bytes: &str) -> String;

    /// The first byte, as two digits.
    fn first_byte(bytes: &str) -> String;

    /// The eight bytes that begin at this place: counted from 1, or from the end.
    fn eight_bytes(bytes: &str, from: i32) -> String;
}

/// A table whose changes leave entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Record,
    Step,
    Rejected,
    Claim,
    Act,
    Event,
}

/// A change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Insert,
    Update,
    Delete,
}

impl Change {
    pub(crate) const ALL: [Self; 3] = [Self::Insert, Self::Update, Self::Delete];

    /// The word of SQL for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// Columns of an entry, and an expression for each.
pub(crate) type Values = Vec<(&'static str, String)>;

/// The codes of states and of kinds of outcomes, as the runtime stores them.
mod code {
    pub(super) const RUNNING: u8 = 1;
    pub(super) const DONE: u8 = 2;
    pub(super) const RELEASED: u8 = 3;
    pub(super) const UNDOING: u8 = 6;
    pub(super) const RERUN: u8 = 1;
    pub(super) const STREAM: u8 = 4;
    pub(super) const STEP_BEGUN: u8 = 1;
}

impl Source {
    pub(crate) const ALL: [Self; 6] = [
        Self::Record,
        Self::Step,
        Self::Rejected,
        Self::Claim,
        Self::Act,
        Self::Event,
    ];

    /// Its name in an entry.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Step => "step",
            Self::Rejected => "rejected",
            Self::Claim => "claim",
            Self::Act => "act",
            Self::Event => "event",
        }
    }

    /// The name of its table, behind the prefix.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Record => "records",
            Self::Step => "steps",
            Self::Rejected => "outbox_rejected",
            Self::Claim => "outbox_claims",
            Self::Act => "outbox_acts",
            Self::Event => "audit_events",
        }
    }

    /// Whether its table belongs to an outbox, which not every program has.
    pub(crate) fn is_of_outbox(self) -> bool {
        matches!(self, Self::Rejected | Self::Claim | Self::Act)
    }

    /// The changes that leave an entry. Those of events are refused, except for an insert.
    pub(crate) fn changes(self) -> &'static [Change] {
        match self {
            Self::Event => &[Change::Insert],
            _ => &Change::ALL,
        }
    }

    /// The first column of its primary key: rows that are older than the trail are found in this
    /// order. `None` for a table that is a history itself.
    pub(crate) fn found_by(self) -> Option<&'static str> {
        match self {
            Self::Record | Self::Rejected => Some("id"),
            Self::Step => Some("record"),
            Self::Claim => Some("message_key"),
            Self::Act | Self::Event => None,
        }
    }

    /// The columns that leave an entry when they change. For a record and a step, the
    /// [note](Self::has_other_note) comes on top.
    fn watched(self) -> &'static [&'static str] {
        match self {
            Self::Record => &[
                "id",
                "operation",
                "state",
                "token",
                "attempt_id",
                "outcome",
                "outcome_kind",
                "outcome_schema",
            ],
            Self::Step => &[
                "record",
                "name",
                "state",
                "attempt_id",
                "outcome",
                "outcome_kind",
                "outcome_schema",
            ],
            Self::Rejected => &["id", "message_key", "topic", "payload"],
            Self::Claim => &["message_key", "token", "blocked_since"],
            Self::Act => &["message_key", "acted", "act", "person", "reason"],
            Self::Event => &[],
        }
    }

    /// Whether its rows have outcomes, and notes about their versions.
    pub(crate) fn has_outcomes(self) -> bool {
        matches!(self, Self::Record | Self::Step)
    }

    /// The condition under which an update leaves an entry: heartbeats, marks of waiting calls and
    /// ends of leases do not.
    pub(crate) fn is_changed<DB: Words>(self) -> String {
        let differs =
            |column: &&str| DB::differs(&format!("OLD.{column}"), &format!("NEW.{column}"));
        let mut all: Vec<_> = self.watched().iter().map(differs).collect();
        if self.has_outcomes() {
            all.push(has_other_note::<DB>());
        }
        all.join(" OR ")
    }

    /// The entry of a change.
    pub(crate) fn entry<DB: Words>(self, change: Change) -> Values {
        let row = match change {
            Change::Delete => "OLD",
            Change::Insert | Change::Update => "NEW",
        };
        let mut values = self.about::<DB>(row);
        values.push(("kind", self.kind::<DB>(change)));
        let state = self.state();
        if change != Change::Insert {
            values.extend(state.map(|state| ("state_before", state("OLD"))));
        }
        if change != Change::Delete {
            values.extend(state.map(|state| ("state_after", state("NEW"))));
            values.extend(self.note::<DB>("NEW"));
        }
        if self.has_outcomes() {
            if change == Change::Update {
                values.push(("hash_before", DB::hash("OLD.outcome")));
            }
            values.push(("outcome_hash", DB::hash(&format!("{row}.outcome"))));
        }
        if (self, change) == (Self::Record, Change::Delete) {
            values.push(("forgettable", is_forgettable::<DB>()));
        }
        values
    }

    /// The entry of a row that is older than the trail.
    pub(crate) fn found<DB: Words>(self) -> Values {
        const ROW: &str = "seen";
        let mut values = self.about::<DB>(ROW);
        values.push(("kind", "'found'".to_owned()));
        values.extend(self.state().map(|state| ("state_after", state(ROW))));
        values.extend(self.note::<DB>(ROW));
        if self.has_outcomes() {
            values.push(("outcome_hash", DB::hash(&format!("{ROW}.outcome"))));
        }
        values
    }

    /// The columns that say what an entry is about.
    fn about<DB: Words>(self, row: &str) -> Values {
        let of = |columns: &[(&'static str, &str)]| {
            let columns = columns.iter();
            columns
                .map(|(to, from)| (*to, format!("{row}.{from}")))
                .collect::<Values>()
        };
        let mut values = match self {
            Self::Record => {
                let mut values = of(&[
                    ("record", "id"),
                    ("operation", "operation"),
                    ("attempt", "attempt"),
                    ("token", "token"),
                    ("holder", "holder"),
                    ("outcome_kind", "outcome_kind"),
                ]);
                values.push(("stream", stream::<DB>(row)));
                values
            }
            Self::Step => of(&[
                ("record", "record"),
                ("step", "name"),
                ("label", "label"),
                ("outcome_kind", "outcome_kind"),
            ]),
            Self::Rejected => vec![("record", DB::hash(&format!("{row}.id")))],
            Self::Claim => {
                let mut values = of(&[("attempt", "attempts"), ("token", "token")]);
                values.push(("record", DB::hash(&format!("{row}.message_key"))));
                values
            }
            Self::Act => vec![
                ("record", DB::hash(&format!("{row}.message_key"))),
                ("label", DB::as_text(&format!("{row}.act"))),
            ],
            Self::Event => of(&[
                ("label", "event"),
                ("holder", "holder"),
                ("note", "detail"),
                ("note_by", "person"),
            ]),
        };
        values.push(("source", format!("'{}'", self.name())));
        values.push(("written", DB::NOW.to_owned()));
        values.push(("db_user", DB::USER.to_owned()));
        values
    }

    /// The state of a row, where it has one. A claimed key is claimed (1) or parked (2).
    fn state(self) -> Option<fn(&str) -> String> {
        match self {
            Self::Record | Self::Step => Some(|row| format!("{row}.state")),
            Self::Claim => {
                Some(|row| format!("CASE WHEN {row}.blocked_since > 0 THEN 2 ELSE 1 END"))
            }
            Self::Rejected => Some(|_| "1".to_owned()),
            Self::Act | Self::Event => None,
        }
    }

    /// The word of a person, where it is about the version that stands.
    fn note<DB: Words>(self, row: &str) -> Values {
        let noted =
            |column| format!("CASE WHEN {row}.note_of = {row}.version THEN {row}.{column} END");
        match self {
            Self::Record | Self::Step => {
                vec![("note", noted("note")), ("note_by", noted("note_by"))]
            }
            Self::Act => vec![
                ("note", DB::as_text(&format!("{row}.reason"))),
                ("note_by", DB::as_text(&format!("{row}.person"))),
            ],
            Self::Rejected | Self::Claim | Self::Event => Vec::new(),
        }
    }

    fn kind<DB: Words>(self, change: Change) -> String {
        let by_person = "NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator'";
        match (self, change) {
            (Self::Event, _) => "'event'".to_owned(),
            (_, Change::Delete) => "'deleted'".to_owned(),
            (Self::Act, Change::Insert) => "'operator'".to_owned(),
            (Self::Rejected | Self::Act, Change::Update) => "'rewritten'".to_owned(),
            (Self::Record | Self::Step, Change::Insert) => {
                format!("CASE WHEN {by_person} ELSE 'call' END")
            }
            (Self::Rejected | Self::Claim, Change::Insert) => "'call'".to_owned(),
            (Self::Claim, Change::Update) => {
                let other = DB::differs("OLD.token", "NEW.token");
                format!(
                    "CASE WHEN OLD.token <> 0 AND NEW.token <> 0 AND {other} THEN 'takeover' ELSE 'call' END"
                )
            }
            (Self::Record | Self::Step, Change::Update) => {
                let (taken, alone) = (self.is_taken_over::<DB>(), self.is_rewritten::<DB>());
                format!(
                    "CASE WHEN {by_person} WHEN {taken} THEN 'takeover' WHEN {alone} THEN 'rewritten' ELSE 'call' END"
                )
            }
        }
    }

    /// Another attempt goes on where the holder of an earlier one vanished.
    fn is_taken_over<DB: Words>(self) -> String {
        use code::{RUNNING, STEP_BEGUN, UNDOING};
        let other = DB::differs("OLD.attempt_id", "NEW.attempt_id");
        match self {
            Self::Step => format!("OLD.state = {STEP_BEGUN} AND {other}"),
            _ => format!(
                "OLD.state IN ({RUNNING}, {UNDOING}) AND OLD.created = NEW.created AND {other}"
            ),
        }
    }

    /// The outcome changed, and nothing that says why.
    fn is_rewritten<DB: Words>(self) -> String {
        let of = |column: &&str| DB::differs(&format!("OLD.{column}"), &format!("NEW.{column}"));
        let columns = self.watched().iter();
        let (outcome, why): (Vec<_>, Vec<_>) = columns.partition(|it| it.starts_with("outcome"));
        let differs = |columns: Vec<&&str>| {
            let differs: Vec<_> = columns.into_iter().map(&of).collect();
            differs.join(" OR ")
        };
        format!("({}) AND NOT ({})", differs(outcome), differs(why))
    }
}

/// A person's note is new with each version that has one. That of a program is written again by
/// each heartbeat.
fn has_other_note<DB: Words>() -> String {
    let (of, text) = (
        DB::differs("OLD.note_of", "NEW.note_of"),
        DB::differs("OLD.note", "NEW.note"),
    );
    format!("{of} AND (NEW.note_by IS NOT NULL OR {text})")
}

/// Whether a purge might have deleted the record.
fn is_forgettable<DB: Words>() -> String {
    use code::{DONE, RELEASED, RERUN, RUNNING};
    let now = DB::NOW;
    format!(
        "CASE WHEN OLD.expires <= {now} AND (OLD.state IN ({DONE}, {RELEASED}) OR OLD.state = {RUNNING} AND OLD.on_crash = {RERUN} AND OLD.lease_end <= {now}) THEN 1 ELSE 0 END"
    )
}

/// The number of a stream, as eight bytes: the one that runs, or else the last one. The runtime
/// stores which parts follow in the first byte, the last number behind it, and the one that runs
/// 40 bytes before the end, or 84 if it passed another one.
fn stream<DB: Words>(row: &str) -> String {
    let outcome = format!("{row}.outcome");
    let (parts, last) = (DB::first_byte(&outcome), DB::eight_bytes(&outcome, 2));
    let (running, passing) = (
        DB::eight_bytes(&outcome, -40),
        DB::eight_bytes(&outcome, -84),
    );
    let stream = code::STREAM;
    format!(
        "CASE WHEN {row}.outcome_kind = {stream} THEN CASE WHEN {parts} = '01' THEN {last} WHEN {parts} IN ('02', '03') THEN {running} WHEN {parts} IN ('06', '07') THEN {passing} END END"
    )
}
