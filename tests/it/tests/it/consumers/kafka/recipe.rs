//! The listings of the guide's page on Kafka. A test holds the page to them.

use idempotent_runtime::consumer::Disposition;

use super::app::{App, Message, Position, book, put_aside};

const ADVANCE: &str = "UPDATE offsets SET next = $1, deliveries = 0
    WHERE topic = $2 AND partition = $3 AND next = $4";

/// Processes a message and moves the offset; nothing where another consumer has moved it.
pub(super) async fn process(
    app: &App,
    it: &Message,
    at: Position,
) -> sqlx::Result<Option<Disposition>> {
    let mut tx = app.pool.begin().await?;
    let moved = sqlx::query(ADVANCE).bind(it.offset + 1);
    let moved = moved.bind(&it.topic).bind(it.partition).bind(at.next);
    if moved.execute(&mut *tx).await?.rows_affected() == 0 {
        return Ok(None);
    }
    let message = app.consumer.message(&(&*it.topic, it.partition, it.offset));
    let message = message.payload(&it.order).delivery(at.delivery);
    let staged = message.run_in(&mut *tx, async |tx| book(tx, it).await);
    let staged = staged.await;
    if let Disposition::DeadLetter { reason, .. } = staged.disposition() {
        put_aside(&mut tx, it, *reason).await?;
    }
    Ok(Some(staged.commit(tx).await))
}

/// Tells where a partition goes on, and counts that it was tried from there.
pub(super) async fn seek(app: &App, topic: &str, partition: i32) -> sqlx::Result<Position> {
    let tried = "UPDATE offsets SET deliveries = deliveries + 1
        WHERE topic = $1 AND partition = $2 RETURNING next, deliveries";
    let tried = sqlx::query_as(tried).bind(topic).bind(partition);
    let (next, deliveries): (i64, i32) = tried.fetch_one(&app.pool).await?;
    let delivery = deliveries.unsigned_abs();
    Ok(Position { next, delivery })
}
