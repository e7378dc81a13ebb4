//! The guard of uncertain and parked records, in the words of a database.

use idempotent_runtime::__audit::Dialect;

use crate::{
    names::Names,
    source::{Change, Source, Words},
};

/// The words before a proposal, in the error of a database.
pub(crate) const REFUSED: &str = "four eyes: ";

pub(crate) const PROPOSE: &str = "propose";
pub(crate) const APPROVE: &str = "approve";

/// How long a proposal stands, in microseconds: 24 hours.
pub(crate) const STANDS: i64 = 24 * 60 * 60 * 1_000_000;

/// The proposal that a change of a record is.
fn proposal<DB: Dialect + Words>(change: Change) -> String {
    let version = DB::digits("OLD.version");
    if change == Change::Delete {
        return DB::joined(&[version, "'0 -1 -'".to_owned()]);
    }
    let hash = DB::digest("NEW.outcome");
    let kind = "COALESCE(NEW.outcome_kind, -1)".to_owned();
    DB::joined(&[version, "NEW.state".to_owned(), kind, hash])
}

/// Whether a change needs the approval of a second person, and has none.
///
/// Users of the application write for a person only where they sign for one. Every other user is a
/// person.
pub(crate) fn lacks_approval<DB: Dialect + Words>(
    names: &Names,
    users: &[String],
    change: Change,
) -> String {
    // A server may show a literal without the charset that stands before it.
    let text = |user: &String| DB::as_text(&DB::bytes(user.as_bytes()));
    let users: Vec<_> = users.iter().map(text).collect();
    let users = users.join(", ");
    let is_person = match DB::user_name(DB::USER) {
        Some(user) => format!("{user} NOT IN ({users})"),
        None => "1 = 0".to_owned(),
    };
    let signs = match change {
        Change::Update => format!(
            " OR NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL AND {}",
            DB::differs("OLD.version", "NEW.version")
        ),
        _ => String::new(),
    };
    let of = |event: &str| match DB::user_name(&format!("{event}.db_user")) {
        Some(user) => format!("CASE WHEN {user} IN ({users}) THEN {event}.person ELSE {user} END"),
        None => format!("{event}.person"),
    };
    let (events, now) = (names.of(Source::Event), DB::NOW);
    let like = DB::joined(&[proposal::<DB>(change), "'%'".to_owned()]);
    format!(
        "OLD.state IN (4, 5) AND ({is_person}{signs}) AND NOT EXISTS (
             SELECT 1 FROM {events} AS one JOIN {events} AS other ON other.number > one.number
             WHERE one.event = '{PROPOSE}' AND other.event = '{APPROVE}'
               AND one.detail LIKE {like} AND other.detail LIKE {like}
               AND one.written > {now} - {STANDS} AND other.written > {now} - {STANDS}
               AND {one} <> {another})",
        one = of("one"),
        another = of("other"),
    )
}

/// The words with which a change is refused.
pub(crate) fn refusal<DB: Dialect + Words>(change: Change) -> String {
    let proposal = proposal::<DB>(change);
    DB::joined(&[format!("'{}'", REFUSED.trim_end()), proposal])
}
