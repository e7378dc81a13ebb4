use idempotent_runtime::{Error, Idempotency, sequence::Decision};

struct Event {
    account: u64,
    number: String,
    signed: i64,
}

async fn negative(idem: &Idempotency) {
    let _ = idem.sequence("accounts", "account-7").first(1).number(-1);
}

async fn text(idem: &Idempotency, event: Event) {
    let _ = idem.sequence("accounts", &event.account).first(1).number(event.number);
}

async fn signed(idem: &Idempotency, event: Event) {
    let _ = idem.sequence("accounts", &event.account).first(1).number(event.signed);
}

async fn negative_first(idem: &Idempotency) {
    let _ = idem.sequence("accounts", "account-7").first(-1);
}

async fn no_rule(idem: &Idempotency) {
    let _ = idem.sequence("accounts", "account-7").number(1);
}

async fn a_gap_is_waited_for_without_a_first_number(idem: &Idempotency) {
    let _ = idem.sequence("accounts", "account-7").wait_for_gap("10s").number(1);
}

async fn a_gap_is_waited_for_and_accepted(idem: &Idempotency) {
    let _ = idem.sequence("accounts", "account-7").accept_gaps().wait_for_gap("10s");
}

async fn a_key_that_is_none(idem: &Idempotency) {
    let _ = idem.sequence("accounts", &1.5).first(1);
}

async fn an_error_without_a_place_for_ours(idem: &Idempotency) {
    let call = idem.sequence("accounts", "account-7").first(1).number(1);
    let _ = call.run(async |_| Err::<(), _>(std::io::Error::other("away"))).await;
}

async fn a_value_that_cannot_be_stored(idem: &Idempotency) {
    let call = idem.sequence("accounts", "account-7").first(1).number(1);
    let _ = call.run(async |_| Ok::<_, Error>(std::time::Instant::now())).await;
}

async fn all_decisions(decision: Decision<u64>) -> u64 {
    match decision {
        Decision::Applied(value) | Decision::Replayed(value) => value,
    }
}

fn main() {}
