//! An outcome is revealed to a person, and observers get an event of it.

use std::sync::{Arc, Mutex};

use idempotent_runtime::{
    Error, Idempotency, MemoryStore, NotSettled, Observer, RevealEvent, identity::RecordId, step,
};

/// Keeps the names of those who read.
#[derive(Clone, Default)]
struct Readers(Arc<Mutex<Vec<String>>>);

impl Observer for Readers {
    fn revealed(&self, event: &RevealEvent<'_>) {
        let read = format!("{} {}", event.by, event.operation);
        self.0.lock().expect("a list").push(read);
    }
}

#[tokio::test]
async fn an_outcome_is_revealed_to_a_person_with_a_name() {
    let readers = Readers::default();
    let idem = Idempotency::builder(MemoryStore::new()).observer(readers.clone());
    let idem = idem.build().expect("a handle");
    let id = async |key: &str| {
        let page = idem.records().key(key).page(1).await.expect("a page");
        page.rows[0].id
    };
    let done = idem.call("charge").key("done");
    let body = async |_| step("gateway", async |_| Ok::<_, Error>(7_u64)).await;
    done.run(body).await.expect("it is charged");
    let failed = idem.call("charge").key("failed").uncertain_errors();
    let silent = failed.run(async |_| Err::<(), _>(Error::InvalidPolicy("no answer")));
    silent.await.expect_err("nobody knows");
    let stream = idem.sequence("ledger", "eur").first(1);
    let applied = stream.number(1).run(async |_| Ok::<_, Error>(1));
    let _decision = applied.await.expect("it is applied");

    for nobody in ["", "  ", &"a".repeat(257)] {
        let refused = idem.reveal(id("done").await, nobody).await;
        let refused = refused.expect_err("it has no name");
        assert!(matches!(refused, Error::InvalidPolicy(_)), "{refused:?}");
    }
    let missing = idem.reveal(RecordId::from_bytes([7; 32]), "anna").await;
    let missing = missing.expect_err("there is none");
    let reason = match missing {
        Error::NotSettled { reason, .. } => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason, NotSettled::UnknownKey);
    for key in ["failed", "eur"] {
        let none = idem
            .reveal(id(key).await, "anna")
            .await
            .expect("it is read");
        assert!(none.is_none(), "{key}");
    }
    assert!(
        readers.0.lock().expect("a list").is_empty(),
        "nothing is revealed"
    );

    let outcome = idem.reveal(id("done").await, "anna").await;
    let outcome = outcome.expect("it is read").expect("an outcome");
    assert_eq!(outcome.decode::<u64>().expect("a number"), 7);
    assert_eq!(*readers.0.lock().expect("a list"), ["anna charge"]);
}
