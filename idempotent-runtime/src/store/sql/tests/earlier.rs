//! The build before this one, by its statements: its schema has two steps, and its tables no notes.
//! Its records are upgraded, and it works beside this build.

use std::sync::Arc;

use super::{
    super::{Value, step_written, written},
    upgrade::{KNOWN, Upgrade},
};
use crate::{
    identity::RecordId,
    record::{
        Draft, Note, Record, Step, StepName, StepState, TokenRule, Version, draft::tests::claim,
    },
    store::{StepStore, StepWrite, Store, Swap, sql::TablePrefix},
};

/// How many steps the schema of that build has.
const ITS_STEPS: usize = 2;

/// The values of a write as that build numbers them: it has no parameters of a note.
fn without_note<const N: usize>(values: [Value<'_>; N]) -> Vec<Value<'_>> {
    let mut values = Vec::from(values);
    let seen = values.pop();
    values.truncate(N - 4);
    values.extend(seen);
    values
}

/// A statement of that build, for the tables of this prefix, and what stands behind its name.
pub(crate) fn statement<'a>(
    golden: &'a str,
    name: &str,
    prefix: &TablePrefix,
) -> (String, &'a str) {
    let sections = golden.split("-- ").filter_map(|it| it.split_once('\n'));
    let mut found = sections.filter(|(head, _)| head.split(", ").next() == Some(name));
    let (head, text) = found.next().expect("the statement is in the golden file");
    let text = text.trim_end().replace("golden_", &prefix.to_string());
    let rest = head.split_once(", ").map_or("", |(_, rest)| rest);
    (text, rest)
}

fn note() -> Option<Arc<Note>> {
    let by = Some("anna".into());
    let text = "the dashboard shows it".into();
    Some(Arc::new(Note { by, text }))
}

/// The next version of a record that is held, as its holder writes it.
fn next(of: &Draft) -> Draft {
    Draft {
        version: Version::random(),
        subject: None,
        token: TokenRule::Keep,
        ..of.clone()
    }
}

async fn stands(store: &impl Store, id: &RecordId) -> Arc<Record> {
    let snapshot = store.load(id).await.expect("a look is answered");
    snapshot.record.expect("a record stands")
}

async fn applied(store: &impl Store, id: &RecordId, seen: Version, next: &Draft) -> Arc<Record> {
    let swap = store.swap(id, Some(seen), next).await;
    assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
    stands(store, id).await
}

/// Its records and steps are upgraded and read. It leaves a note in the row that it writes over,
/// and the note counts no more: the operator did not do what the program does.
pub(crate) async fn works_beside_this_build(earlier: impl Upgrade) {
    let stays = "it stays in the row";
    let notes_in = |table| {
        let prefix = earlier.prefix();
        format!("SELECT count(*) FROM {prefix}{table} WHERE note_by = 'anna'")
    };
    earlier.begin(ITS_STEPS).await;
    let id = RecordId::from_bytes([1; 32]);
    let begun = claim(b"key");
    earlier
        .write("create", without_note(written(&id, None, &begun)))
        .await;
    let step = Step {
        name: StepName::from_bytes([2; 32]),
        label: "flight".into(),
        version: Version::random(),
        state: StepState::Begun,
        attempt_id: begun.attempt_id,
        on_crash: begun.on_crash,
        fingerprint: claim(b"key")
            .subject
            .expect("it begins")
            .fingerprint
            .clone(),
        outcome: None,
        undo: Some(1),
        note: None,
    };
    earlier
        .write("write_step", without_note(step_written(&id, None, &step)))
        .await;

    let store = earlier.open().await.expect("the tables are upgraded");
    let versions = format!("SELECT count(*) FROM {}schema", earlier.prefix());
    assert_eq!(earlier.count(versions).await, KNOWN);
    let record = stands(&store, &id).await;
    assert_eq!(
        (record.version, record.note.as_ref()),
        (begun.version, None)
    );
    let steps = store.load_steps(&id, &StepName::ALL).await;
    assert_eq!(steps.ok(), Some(vec![Arc::new(step.clone())]));

    let (beats, its_beats) = (next(&begun).noted(note()), next(&begun));
    let record = applied(&store, &id, begun.version, &beats).await;
    assert_eq!(record.note, note());
    let seen = Some(beats.version);
    earlier
        .write("replace", without_note(written(&id, seen, &its_beats)))
        .await;
    let record = stands(&store, &id).await;
    assert_eq!(
        (record.version, record.note.as_ref()),
        (its_beats.version, None)
    );
    assert_eq!(earlier.count(notes_in("records")).await, 1, "{stays}");

    let noted = Step {
        version: Version::random(),
        note: note(),
        ..step.clone()
    };
    let written = store.write_step(&id, Some(step.version), &noted).await;
    assert!(matches!(written, Ok(StepWrite::Written)), "{written:?}");
    let steps = store.load_steps(&id, &StepName::ALL).await;
    assert_eq!(steps.ok(), Some(vec![Arc::new(noted.clone())]));
    let its = Step {
        version: Version::random(),
        ..step
    };
    let seen = Some(noted.version);
    let values = without_note(step_written(&id, seen, &its));
    earlier.write("write_step", values).await;
    let steps = store.load_steps(&id, &StepName::ALL).await;
    assert_eq!(steps.ok(), Some(vec![Arc::new(its)]));
    assert_eq!(earlier.count(notes_in("steps")).await, 1, "{stays}");
}
