//! The choices on the command line.

use serde::{Deserialize, Serialize};

use crate::Failure;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Choices {
    pub(crate) child_key: ChildKey,
    pub(crate) on_crash: Crash,
}

/// Whether the service hands its child key to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ChildKey {
    Forwarded,
    LeftOut,
}

/// How the service treats a charge whose holder vanished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Crash {
    Rerun,
    Uncertain,
}

/// Reads the command line.
pub(crate) fn read(arguments: &[String]) -> Result<Choices, Failure> {
    let mut choices = Choices {
        child_key: ChildKey::Forwarded,
        on_crash: Crash::Rerun,
    };
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--without-child-key" => choices.child_key = ChildKey::LeftOut,
            "--on-crash" => {
                choices.on_crash = match words.next() {
                    Some("rerun") => Crash::Rerun,
                    Some("uncertain") => Crash::Uncertain,
                    _ => return Err("`--on-crash` takes `rerun` or `uncertain`".into()),
                }
            }
            other => {
                return Err(format!(
                    "unknown argument `{other}`, there are `--without-child-key` and `--on-crash`"
                )
                .into());
            }
        }
    }
    Ok(choices)
}
