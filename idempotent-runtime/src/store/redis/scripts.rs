//! The scripts that the server runs: one a call, over one key. Lua has no numbers beyond 2^53, so
//! moments and tokens are text there.

use redis::Script;

use super::link::Repeats;
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
}

/// A script's text and its digest.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) code: String,
    pub(super) digest: String,
    pub(super) repeats: Repeats,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            load: Text::new(include_str!("scripts/load.lua"), Repeats::Safely),
            swap: Text::new(include_str!("scripts/swap.lua"), Repeats::Never),
            mark: Text::new(include_str!("scripts/mark.lua"), Repeats::Safely),
            purge: Text::new(include_str!("scripts/purge.lua"), Repeats::Safely),
            put: Text::new(include_str!("scripts/put.lua"), Repeats::Never),
            forget: Text::new(include_str!("scripts/forget.lua"), Repeats::Never),
            load_steps: Text::new(include_str!("scripts/load_steps.lua"), Repeats::Safely),
            list_steps: Text::new(include_str!("scripts/list_steps.lua"), Repeats::Safely),
            write_step: Text::new(include_str!("scripts/write_step.lua"), Repeats::Never),
        }
    }
}

impl Text {
    fn new(body: &str, repeats: Repeats) -> Self {
        let words = format!(
            "local RUNNING, DONE, RELEASED, UNCERTAIN, UNDOING = '{}', '{}', '{}', '{}', '{}'
local RERUN = '{}'
local function record()
    return redis.call('HMGET', KEYS[1], '{}')
end
local VERSION, STATE, ATTEMPT_ID = {}, {}, {}
",
            State::Running.code(),
            State::Done.code(),
            State::Released.code(),
            State::Uncertain.code(),
            State::Undoing.code(),
            OnCrash::Rerun.code(),
            COLUMNS[1..].join("', '"),
            place("version"),
            place("state"),
            place("attempt_id"),
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
