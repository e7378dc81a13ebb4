//! Every written value comes back, whatever it is.

use std::sync::Arc;

use super::{
    StoreUnderTest,
    sample::{
        LEASE, STATES, applied, claim, claimed, completion, heartbeat, id, next, release, replaced,
        standing, subject as about, swap,
    },
};
use crate::{
    policy::OnCrash,
    record::{
        Draft, Holder, Moment, Note, OutcomeKind, RawOutcome, Record, State, Subject as About,
        TokenRule,
    },
    store::Swap,
};

/// F22: every field comes back, in every state, with every choice and kind of outcome, through
/// another client too.
pub(super) async fn every_field_comes_back(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let outcomes = [
        RawOutcome::value("v"),
        RawOutcome::error("e").with_schema(7),
        RawOutcome::not_replayable().with_schema(u32::MAX),
    ];
    let holders = [
        Holder {
            label: "".into(),
            trace_parent: None,
        },
        Holder {
            label: "höst:1 \u{1f980}".into(),
            trace_parent: Some("".into()),
        },
        Holder {
            label: "h".repeat(300).into(),
            trace_parent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
        },
    ];
    let mut numbers = 0..;
    for state in STATES {
        for on_crash in [OnCrash::Rerun, OnCrash::Reconcile, OnCrash::Uncertain] {
            for (outcome, holder) in outcomes.iter().zip(&holders) {
                let id = id(numbers.next().unwrap_or(0));
                let draft = Draft {
                    on_crash,
                    holder: holder.clone(),
                    attempt: u32::MAX,
                    ..claim()
                };
                let held = applied(&*store, id, None, &draft).await;
                let outcome = (state == State::Done).then(|| outcome.clone());
                let ending = Draft {
                    outcome,
                    lease: Moment::In(LEASE),
                    ..next(&draft, state)
                };
                let ended = replaced(&*store, id, &held, &ending).await;
                assert_eq!(standing(&*other, id).await, ended);
                let unlike = unlike(&ended);
                let again = replaced(&*store, id, &ended, &unlike).await;
                assert_eq!(standing(&*other, id).await, again);
            }
        }
    }
}

/// A claim over a record of which only the subject stays.
fn unlike(record: &Record) -> Draft {
    let on_crash = match record.on_crash {
        OnCrash::Rerun => OnCrash::Uncertain,
        _ => OnCrash::Rerun,
    };
    let label = format!("not {}", record.holder.label);
    let trace_parent = match record.holder.trace_parent {
        Some(_) => None,
        None => Some("00-1-1-01".into()),
    };
    Draft {
        subject: None,
        token: TokenRule::Above(record.token),
        on_crash,
        holder: Holder {
            label: label.into(),
            trace_parent,
        },
        ..claim()
    }
}

/// B11, F14: any operation name, scope and key comes back byte by byte: NUL, every Unicode plane,
/// bytes that are no text at all, empty, and 64 KiB.
pub(super) async fn any_key_comes_back(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let planes: String = (0..=16)
        .filter_map(|plane| char::from_u32(plane * 0x10000 + 0x41))
        .collect();
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let keys: [&[u8]; 9] = [
        b"",
        b"\0",
        b"a\0b\0",
        b"'; DROP TABLE records; --",
        b"trailing blanks  ",
        "straße \u{0301}".as_bytes(),
        planes.as_bytes(),
        &every_byte,
        &b"k".repeat(64 * 1024),
    ];
    for (number, key) in (0..).zip(keys) {
        let whole = About {
            operation: planes.as_str().into(),
            scope: key.iter().rev().copied().collect(),
            ..(*about(key)).clone()
        };
        let draft = Draft {
            subject: Some(Arc::new(whole.clone())),
            ..claim()
        };
        let held = applied(&*store, id(number), None, &draft).await;
        assert_eq!(*held.subject, whole);
        let beaten = replaced(&*store, id(number), &held, &heartbeat(&draft)).await;
        assert_eq!(*beaten.subject, whole);
    }
}

/// A stream of numbered calls has an outcome in every state: the one that stands of its last
/// number.
pub(super) async fn a_stream_comes_back_in_every_state(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let stream = |text: &'static str| {
        Some(RawOutcome {
            kind: OutcomeKind::Stream,
            schema: 1,
            bytes: text.into(),
        })
    };
    for (number, state) in (0..).zip(STATES) {
        let begun = Draft {
            outcome: stream("the first one runs"),
            ..claim()
        };
        let held = applied(&*store, id(number), None, &begun).await;
        assert_eq!(standing(&*other, id(number)).await, held);
        let beat = Draft {
            outcome: stream("the first one runs"),
            ..heartbeat(&begun)
        };
        let beaten = replaced(&*store, id(number), &held, &beat).await;
        assert_eq!(standing(&*other, id(number)).await, beaten);
        let ended = Draft {
            outcome: stream("the first one has ended"),
            ..next(&begun, state)
        };
        let ended = replaced(&*store, id(number), &beaten, &ended).await;
        assert_eq!(standing(&*other, id(number)).await, ended);
        let again = Draft {
            subject: Some(about("another")),
            outcome: stream("the second one runs"),
            token: TokenRule::Above(ended.token),
            ..claim()
        };
        let again = replaced(&*store, id(number), &ended, &again).await;
        assert_eq!(standing(&*other, id(number)).await, again);
    }
}

/// A note comes back with the version that it was written with, through another client too, and is
/// gone with the next version.
pub(super) async fn a_note_belongs_to_one_version(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let noted = |by: Option<&str>, text: &str, draft: Draft| {
        let by = by.map(Into::into);
        let text = text.into();
        draft.noted(Some(Arc::new(Note { by, text })))
    };
    for (number, state) in (0..).zip(STATES) {
        let id = id(number);
        let begun = noted(Some("Zoë"), "läte \u{1f980}", claim());
        let held = applied(&*store, id, None, &begun).await;
        assert_eq!(standing(&*other, id).await, held);
        let beaten = replaced(&*store, id, &held, &heartbeat(&begun)).await;
        assert_eq!(beaten.note, begun.note, "a heartbeat writes it, too");
        let bare = heartbeat(&begun).noted(None);
        let bare = replaced(&*store, id, &beaten, &bare).await;
        assert_eq!(standing(&*other, id).await, bare);
        let ending = noted(None, "said by no person", next(&begun, state));
        let ended = replaced(&*store, id, &bare, &ending).await;
        assert_eq!(standing(&*other, id).await, ended);
        let silent = noted(Some("anna"), "", next(&begun, state));
        // This client has not seen the version that it writes over.
        let stranger = subject.store().await;
        let written = swap(&*stranger, id, Some(ended.version), &silent).await;
        assert!(matches!(written, Swap::Applied(_)), "{written:?}");
        let stands = standing(&*store, id).await;
        assert_eq!(stands.note, silent.note);
        let silent = stands;
        assert_eq!(standing(&*other, id).await, silent);
        let done = completion(&begun, "v").noted(None);
        let done = replaced(&*store, id, &silent, &done).await;
        assert_eq!(standing(&*other, id).await, done);
    }
    for (number, ends) in (100..).zip([|of: &Draft| completion(of, "v"), release]) {
        let (begun, held) = claimed(&*store, id(number)).await;
        let ends = noted(Some("anna"), "it is on the statement", ends(&begun));
        let ended = replaced(&*store, id(number), &held, &ends).await;
        assert_eq!(standing(&*other, id(number)).await, ended);
    }
}

/// F14: any outcome comes back byte by byte, the empty one included, and of whatever kind it is.
pub(super) async fn any_outcome_comes_back(subject: &dyn StoreUnderTest) {
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    for (number, bytes) in (0..).zip([vec![], vec![0], every_byte.repeat(3), vec![0xff; 70_000]]) {
        outcome_comes_back(subject, number, bytes).await;
    }
    let store = subject.store().await;
    for (number, outcome) in (10..).zip([
        None,
        Some(RawOutcome::error("e").with_schema(u32::MAX)),
        Some(RawOutcome::not_replayable()),
    ]) {
        let (draft, held) = claimed(&*store, id(number)).await;
        let ending = Draft {
            outcome,
            ..completion(&draft, "")
        };
        replaced(&*store, id(number), &held, &ending).await;
    }
}

/// F15: sixteen mebibytes come back whole.
pub(super) async fn an_outcome_of_16_mib_comes_back(subject: &dyn StoreUnderTest) {
    let bytes: Vec<u8> = (0..16 * 1024 * 1024_u32)
        .map(|place| place.to_le_bytes()[(place % 3) as usize])
        .collect();
    outcome_comes_back(subject, 0, bytes).await;
}

async fn outcome_comes_back(subject: &dyn StoreUnderTest, number: u32, bytes: Vec<u8>) {
    let (store, other) = (subject.store().await, subject.store().await);
    let (draft, held) = claimed(&*store, id(number)).await;
    let ending = Draft {
        outcome: Some(RawOutcome::value(bytes.clone())),
        ..completion(&draft, "")
    };
    let swap = swap(&*store, id(number), Some(held.version), &ending).await;
    assert!(
        matches!(swap, Swap::Applied(_)),
        "the completion is applied"
    );
    let found = standing(&*other, id(number)).await;
    let found = found.outcome.as_ref().expect("an outcome stands");
    // Not `assert_eq`, which would print sixteen mebibytes.
    assert!(
        found.bytes == bytes,
        "{} of {} bytes came back, or other ones",
        found.bytes.len(),
        bytes.len()
    );
}
