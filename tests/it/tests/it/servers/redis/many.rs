//! Lists over 50,000 records, which the server makes of the one that stands.

use idempotent_runtime::Idempotency;

use super::{past_the_library, private::Private};
use crate::servers::many::{
    RECORDS, UNCERTAIN, charge, in_pages, leave_uncertain, looks_at_what_it_lists, page,
};

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_page_of_many_records_looks_at_some() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    charge(&idem).await;
    let one = server.key().await;
    let script = redis::Script::new(
        "local place = string.sub(KEYS[1], 1, -65)
         for number = 1, ARGV[1] do
             redis.call('COPY', KEYS[1], place .. redis.sha1hex(number) .. string.rep('0', 24))
         end",
    );
    let mut filling = script.key(one);
    let mut side = past_the_library(&server.url()).await;
    let filled = filling.arg(RECORDS).invoke_async::<()>(&mut side).await;
    filled.expect("it copies");
    leave_uncertain(&idem).await;

    looks_at_what_it_lists(idem.records().attention()).await;
    // A page is full behind some handfuls, and looks no further.
    let first = page(&idem.records().operation("charge")).await;
    let (listed, looked) = (first.rows.len(), first.looked);
    assert!(listed >= 50 && looked < 5_000, "{looked}");
    assert_eq!(in_pages(idem.records()).await, RECORDS + 1 + UNCERTAIN);
}
