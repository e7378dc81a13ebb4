//! The sizes of the futures of each form: what a caller's own future has to hold.

use idempotent_runtime::{Error, Idempotency, idempotent, step, step_in, transaction::transaction};
use sqlx::{SqliteConnection, SqlitePool, sqlite::SqlitePoolOptions};

/// The most bytes that each may have: as many as it had when this was written.
const BOUNDS: [(&str, usize); 9] = [
    ("attribute", 1008),
    ("attribute, detached", 904),
    ("attribute, tx", 3232),
    ("run", 1424),
    ("run_in", 3392),
    ("transact", 2032),
    ("transaction", 552),
    ("step", 2992),
    ("step_in", 1872),
];

#[idempotent(key = id)]
async fn leased(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[idempotent(key = id, on_cancel = detach)]
async fn detached(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[idempotent(key = id, tx = tx)]
async fn inline(tx: &mut SqliteConnection, id: u64) -> Result<u64, Error> {
    let _ = tx;
    Ok(id)
}

fn sizes(idem: &Idempotency, pool: &SqlitePool, tx: &mut SqliteConnection) -> [usize; 9] {
    let call = || idem.call("sizes").key(&7);
    let inline = size_of_val(&inline(tx, 7));
    let run_in = size_of_val(&call().run_in(tx, async |_| Ok::<_, Error>(7)));
    [
        size_of_val(&leased(7)),
        size_of_val(&detached(7)),
        inline,
        size_of_val(&call().run(async |_| Ok::<_, Error>(7))),
        run_in,
        size_of_val(&call().transact(pool, async |_| Ok::<_, Error>(7))),
        size_of_val(&transaction(pool, async |_| Ok::<_, Error>(7))),
        size_of_val(&step("one", async |_| Ok::<_, Error>(7)).run()),
        size_of_val(&step_in("one", pool, async |_, _| Ok::<_, Error>(7))),
    ]
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "the figures are what people look for")]
async fn no_future_of_a_form_is_larger_than_it_was() {
    let pool = SqlitePoolOptions::new().connect_lazy("sqlite::memory:");
    let pool = pool.expect("a URL that can be read");
    let mut connection = pool.acquire().await.expect("memory opens");

    let sizes = sizes(&Idempotency::memory(), &pool, &mut connection);

    let forms = BOUNDS.iter().zip(sizes);
    let larger: Vec<_> = forms
        .inspect(|((form, bound), size)| println!("{form}: {size} bytes of {bound}"))
        .filter(|((_, bound), size)| size > bound)
        .collect();
    assert!(larger.is_empty(), "{larger:?}");
}
