//! The check that most tests want.

use std::{
    fmt::Debug,
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

/// Makes `duplicates` calls at the same time and one more after they have answered. Checks that the
/// effect happened once and that every call got the same answer, and returns that answer.
///
/// The last call is a plain retry. A function that only joins calls that are under way, and forgets
/// them when they end, does not pass.
///
/// `effects` tells how often the effect has happened so far: the rows of a table, the number of
/// charges that a fake gateway saw. Effects from before the calls do not count. Two errors are the
/// same answer if their `Debug` texts are the same.
///
/// The calls run in the caller's task, so they may borrow; each of those at the same time begins
/// before any is waited for.
///
/// # Panics
///
/// When the effect did not happen exactly once, when two answers differ, or when `duplicates` is
/// less than two.
///
/// # Examples
///
/// ```
/// # use std::sync::{atomic::{AtomicUsize, Ordering}, OnceLock};
/// # use idempotent_runtime::testing::assert_once;
/// # static RECEIPT: OnceLock<String> = OnceLock::new();
/// # struct Gateway(AtomicUsize);
/// # impl Gateway { fn charges(&self) -> usize { self.0.load(Ordering::SeqCst) } }
/// # async fn charge(gateway: &Gateway, order: &str) -> Result<String, String> {
/// #     Ok(RECEIPT.get_or_init(|| { gateway.0.fetch_add(1, Ordering::SeqCst); format!("receipt for {order}") }).clone())
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let gateway = Gateway(AtomicUsize::new(0));
/// let receipt = assert_once(10, || charge(&gateway, "order-1"), async || gateway.charges()).await;
/// assert_eq!(receipt.unwrap(), "receipt for order-1");
/// # }
/// ```
pub async fn assert_once<F, T, E, C>(
    duplicates: usize,
    call: impl Fn() -> F,
    effects: impl Fn() -> C,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    C: Future<Output = usize>,
    T: PartialEq + Debug,
    E: Debug,
{
    assert!(duplicates > 1, "`assert_once` needs at least two calls");
    let before = effects().await;
    let mut answers = all((0..duplicates).map(|_| call())).await.into_iter();
    let happened = effects().await.wrapping_sub(before);
    let Some(first) = answers.next() else {
        unreachable!("as many answers as calls")
    };
    assert_eq!(
        happened, 1,
        "the effect of {duplicates} equal calls happened {happened} times; the first answer was {first:?}"
    );
    for (place, other) in (2..).zip(answers) {
        assert!(
            is_same(&first, &other),
            "call 1 and call {place} of {duplicates} equal calls got different answers: {first:?} and {other:?}"
        );
    }
    let retry = call().await;
    let again = effects().await;
    let again = again.wrapping_sub(before).wrapping_sub(happened);
    assert_eq!(
        again, 0,
        "the effect of {duplicates} equal calls happened once, and {again} times in the retry after them, which got {retry:?}"
    );
    assert!(
        is_same(&first, &retry),
        "{duplicates} equal calls got one answer, and the retry after them got another answer: {first:?} and {retry:?}"
    );
    first
}

fn is_same<T: PartialEq, E: Debug>(one: &Result<T, E>, other: &Result<T, E>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one == other,
        (Err(one), Err(other)) => format!("{one:?}") == format!("{other:?}"),
        _ => false,
    }
}

struct RunningCall<F: Future> {
    future: Pin<Box<F>>,
    output: Option<F::Output>,
}

/// Drives futures side by side in this task.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures
        .map(|future| RunningCall {
            future: Box::pin(future),
            output: None,
        })
        .collect();
    poll_fn(|context| {
        let mut pending = false;
        for running in futures
            .iter_mut()
            .filter(|running| running.output.is_none())
        {
            match running.future.as_mut().poll(context) {
                Poll::Ready(answer) => running.output = Some(answer),
                Poll::Pending => pending = true,
            }
        }
        if pending {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    futures
        .into_iter()
        .filter_map(|running| running.output)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, convert::Infallible};

    use super::*;

    #[tokio::test]
    async fn one_effect_and_equal_answers_pass() {
        let runs = Cell::new(3);
        let call = || async {
            if runs.get() == 3 {
                runs.set(4);
            }
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(7)
        };
        assert_eq!(assert_once(5, call, async || runs.get()).await, Ok(7));
    }

    #[tokio::test]
    #[should_panic(expected = "happened 5 times")]
    async fn an_effect_for_each_call_is_found() {
        let runs = Cell::new(0);
        let call = || async {
            runs.set(runs.get() + 1);
            Ok::<_, Infallible>(())
        };
        let _ = assert_once(5, call, async || runs.get()).await;
    }

    /// It remembers a call only while one runs, as a function does that just joins calls under way.
    #[tokio::test]
    #[should_panic(expected = "in the retry after them")]
    async fn an_effect_that_a_retry_repeats_is_found() {
        let (runs, running) = (Cell::new(0), Cell::new(0));
        let call = || {
            if running.replace(running.get() + 1) == 0 {
                runs.set(runs.get() + 1);
            }
            let running = &running;
            async move {
                tokio::task::yield_now().await;
                running.set(running.get() - 1);
                Ok::<_, Infallible>(())
            }
        };
        let _ = assert_once(5, call, async || runs.get()).await;
    }

    #[tokio::test]
    #[should_panic(expected = "the retry after them got another answer")]
    async fn another_answer_to_a_retry_is_found() {
        let calls = Cell::new(0);
        let call = || async {
            calls.set(calls.get() + 1);
            Ok::<_, Infallible>(calls.get() > 2)
        };
        let _ = assert_once(2, call, async || usize::from(calls.get() > 0)).await;
    }

    #[tokio::test]
    #[should_panic(expected = "`assert_once` needs at least two calls")]
    async fn one_call_proves_nothing() {
        let runs = Cell::new(0);
        let call = || async {
            runs.set(1);
            Ok::<_, Infallible>(())
        };
        let _ = assert_once(1, call, async || runs.get()).await;
    }

    #[tokio::test]
    #[should_panic(expected = "different answers")]
    async fn different_answers_are_found() {
        let calls = Cell::new(0);
        let call = || async {
            calls.set(calls.get() + 1);
            Ok::<_, Infallible>(calls.get())
        };
        let _ = assert_once(2, call, async || usize::from(calls.get() > 0)).await;
    }

    /// An error like those of `sqlx` or `anyhow`: it cannot be compared.
    #[derive(Debug)]
    struct PlainError(#[expect(dead_code, reason = "its text is compared")] usize);

    #[tokio::test]
    async fn first_hour_18_effects_are_counted_async_and_errors_need_no_equality() {
        let runs = Cell::new(0);
        let count = async || {
            tokio::task::yield_now().await;
            runs.get()
        };
        let call = || async {
            runs.set(1);
            Err::<(), _>(PlainError(7))
        };
        assert!(assert_once(3, call, count).await.is_err());
    }

    #[tokio::test]
    #[should_panic(expected = "different answers: Err(PlainError(1)) and Err(PlainError(2))")]
    async fn first_hour_18_different_errors_are_found() {
        let calls = Cell::new(0);
        let call = || async {
            calls.set(calls.get() + 1);
            Err::<(), _>(PlainError(calls.get()))
        };
        let _ = assert_once(2, call, async || usize::from(calls.get() > 0)).await;
    }
}
