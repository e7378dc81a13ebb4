use idempotent_runtime::{Error, ErrorVerdict, idempotent};
use serde::{Deserialize, Serialize};

#[derive(ErrorVerdict)]
enum NotSaid {
    #[verdict(replay)]
    Declined,
    Database(String),
    NoAnswer,
}

#[derive(ErrorVerdict)]
enum Misspelt {
    #[verdict(relase)]
    Database(String),
    #[verdict(retry)]
    NoAnswer,
    #[verdict]
    Nothing,
    #[verdict(release, replay)]
    Both,
}

#[derive(Serialize, Deserialize, ErrorVerdict)]
enum ReplaysWhatIsSkipped {
    #[verdict(replay)]
    #[serde(skip)]
    Database(String),
    #[verdict(replay)]
    Declined {
        #[serde(default, skip_serializing)]
        reason: String,
    },
    #[verdict(release)]
    #[serde(skip)]
    Unreachable,
}

#[derive(ErrorVerdict)]
#[verdict(release)]
enum OnTheEnum {
    Declined,
}

#[derive(ErrorVerdict)]
struct NoVerdict(String);

#[derive(ErrorVerdict)]
enum OnAField {
    #[verdict(release)]
    Database(#[verdict(release)] String),
}

#[derive(ErrorVerdict)]
union Either {
    left: u8,
    right: u8,
}

#[derive(Debug, Serialize, Deserialize)]
enum NotDerived {
    Idempotency(Error),
}

impl From<Error> for NotDerived {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

#[idempotent(key = id, on_error = ErrorVerdict::verdict)]
async fn not_derived(id: u64) -> Result<u64, NotDerived> {
    Ok(id)
}

fn main() {}
