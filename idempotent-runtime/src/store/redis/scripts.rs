//! The scripts that the server runs: one a call, over the key of one record. Lua has no numbers
//! beyond 2^53, so moments and tokens are text there.

use redis::Script;

use super::{link::Repeats, prefix::SET};
use crate::{policy::OnCrash, record::State, store::sql::COLUMNS};

/// The scripts, with the names by which the server knows them.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) load: Text,
    pub(super) swap: Text,
    pub(super) mark: Text,
    pub(super) purge: Text,
    pub(super) put: Text,
    pub(super) forget: Text,
    pub(super) load_steps: Text,
    pub(super) list_steps: Text,
    pub(super) write_step: Text,
    pub(super) attention: Text,
    pub(super) settled: Text,
}

/// A script's text and its digest.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) code: String,
    pub(super) digest: String,
    pub(super) repeats: Repeats,
}

impl Scripts {
    /// In a cluster, the scripts leave the sets of what needs somebody to the client.
    pub(super) fn new(in_cluster: bool) -> Self {
        let text = |body, repeats| Text::new(body, repeats, in_cluster);
        Self {
            load: text(include_str!("scripts/load.lua"), Repeats::Safely),
            swap: text(include_str!("scripts/swap.lua"), Repeats::Never),
            mark: text(include_str!("scripts/mark.lua"), Repeats::Safely),
            purge: text(include_str!("scripts/purge.lua"), Repeats::Safely),
            put: text(include_str!("scripts/put.lua"), Repeats::Never),
            forget: text(include_str!("scripts/forget.lua"), Repeats::Never),
            load_steps: text(include_str!("scripts/load_steps.lua"), Repeats::Safely),
            list_steps: text(include_str!("scripts/list_steps.lua"), Repeats::Safely),
            write_step: text(include_str!("scripts/write_step.lua"), Repeats::Never),
            attention: text(include_str!("scripts/attention.lua"), Repeats::Safely),
            settled: text(include_str!("scripts/settled.lua"), Repeats::Safely),
        }
    }
}

impl Text {
    fn new(body: &str, repeats: Repeats, in_cluster: bool) -> Self {
        let set = match in_cluster {
            true => "nil".to_owned(),
            false => format!("'{SET}'"),
        };
        let words = format!(
            "local RUNNING, DONE, RELEASED, UNCERTAIN, PARKED, UNDOING = '{}', '{}', '{}', '{}', '{}', '{}'
local RERUN, SET = '{}', {set}
local function record_at(key)
    return redis.pcall('HMGET', key, '{}')
end
local function record()
    return redis.call('HMGET', KEYS[1], '{}')
end
local VERSION, STATE, ATTEMPT_ID, OUTCOME = {}, {}, {}, {}
",
            State::Running.code(),
            State::Done.code(),
            State::Released.code(),
            State::Uncertain.code(),
            State::Parked.code(),
            State::Undoing.code(),
            OnCrash::Rerun.code(),
            COLUMNS[1..].join("', '"),
            COLUMNS[1..].join("', '"),
            place("version"),
            place("state"),
            place("attempt_id"),
            place("outcome"),
        );
        let code = [&words, include_str!("scripts/common.lua"), body].concat();
        let digest = Script::new(&code).get_hash().to_owned();
        Self {
            code,
            digest,
            repeats,
        }
    }
}

/// The place of a field in an answer: Lua counts from one, as the columns behind the id do.
fn place(field: &str) -> usize {
    let place = COLUMNS.iter().position(|column| *column == field);
    place.expect("it is a column")
}
