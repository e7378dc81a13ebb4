//! Writes that fail, and a file that another connection has locked.

use super::*;

#[tokio::test]
async fn a_write_that_fails_takes_no_other_one_with_it() {
    let held = Held::new().await;
    let claims = held.claimed(4).await;
    let mut side = held.side().await;
    refuse_two(&mut side).await;

    let completions = completions(&claims, |number| vec![u8::from(number == 2) + 1]);
    let (answers, _) = held.all(&completions).await;

    for (number, answer) in answers.iter().enumerate() {
        let is_applied = matches!(answer, Ok(Swap::Applied(_)));
        assert_eq!(is_applied, number != 2, "{number}: {answer:?}");
    }
    let mut connection = held.connection().await;
    let begun = connection.execute("BEGIN; COMMIT").await;
    begun.expect("no transaction was left open");
}

#[tokio::test]
async fn a_table_that_is_gone_is_told_to_everybody_in_line() {
    let held = Held::new().await;
    let mut side = held.side().await;
    let rename = "ALTER TABLE idempotent_records RENAME TO elsewhere";
    side.execute(rename).await.expect("nobody has the file");

    let claims = some_claims(3);
    let (answers, _) = held.all(&claims).await;

    assert!(have_failed(&answers, StoreErrorKind::Schema), "{answers:?}");
    let rename = "ALTER TABLE elsewhere RENAME TO idempotent_records";
    side.execute(rename).await.expect("nobody has the file");
    let (answers, _) = held.all(&claims).await;
    assert!(are_applied(&answers), "{answers:?}");
}

#[tokio::test]
async fn what_stands_is_told_while_somebody_else_has_the_file_locked() {
    let held = Held::new().await;
    let claims = held.claimed(3).await;
    let mut side = held.side().await;
    side.execute("BEGIN IMMEDIATE").await.expect("it is free");

    let others = some_claims(3);
    let (answers, _) = held.all(&others).await;

    for (answer, (_, claim)) in answers.iter().zip(&claims) {
        let Ok(Swap::Refused(snapshot)) = answer else {
            panic!("{answer:?}")
        };
        let stands = snapshot.record.as_ref().expect("it was written");
        assert_eq!(stands.version, claim.version);
    }
}

#[tokio::test]
async fn a_file_that_stays_locked_is_told_to_everybody_in_line() {
    let held = Held::new().await;
    let mut side = held.side().await;
    side.execute("BEGIN IMMEDIATE").await.expect("it is free");

    let claims = some_claims(3);
    let (answers, _) = held.all(&claims).await;
    assert!(have_failed(&answers, StoreErrorKind::Busy), "{answers:?}");

    side.execute("COMMIT").await.expect("it has the lock");
    let (answers, _) = held.all(&claims).await;
    assert!(are_applied(&answers), "{answers:?}");
}
