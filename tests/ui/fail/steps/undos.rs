//! Undos that do not fit their step.

use idempotent_runtime::{BoxError, Error, Undo, step};

async fn cancel(_: &str, _: Undo<String>) -> Result<(), BoxError> {
    Ok(())
}

async fn of_another_type() -> Result<String, Error> {
    step("flight", async |_| Ok("booked".to_owned()))
        .undo(async |_: Undo<u64>| Ok::<_, BoxError>(()))
        .await
}

async fn that_borrows(air: &str) -> Result<String, Error> {
    step("flight", async |_| Ok("booked".to_owned()))
        .undo(|undo| cancel(air, undo))
        .await
}

async fn that_runs_once(air: String) -> Result<String, Error> {
    step("flight", async |_| Ok("booked".to_owned()))
        .undo(move |_| async move {
            drop(air);
            Ok::<_, BoxError>(())
        })
        .await
}

async fn that_is_not_send() -> Result<String, Error> {
    step("flight", async |_| Ok("booked".to_owned()))
        .undo(|_| async {
            let air = std::rc::Rc::new("air");
            std::future::ready(()).await;
            drop(air);
            Ok::<_, BoxError>(())
        })
        .await
}

async fn that_gives_something() -> Result<String, Error> {
    step("flight", async |_| Ok("booked".to_owned()))
        .undo(|_| async { Ok::<_, BoxError>(7) })
        .await
}

fn main() {}
