//! Goes over every record, node by node. Redis keeps keys in no order, so that is a look at every
//! key of the database.

use std::{collections::BTreeSet, sync::Arc};

use redis::Value;
use tokio::task::JoinSet;

use super::{Inner, link::Node};
use crate::{
    identity::RecordId,
    store::{StoreError, StoreErrorKind},
};

/// How many keys the server looks at in one command.
const STEP: usize = 500;

/// How many records are asked for at once.
pub(super) const AT_ONCE: usize = 100;

/// The ids that stand, step by step. One may come twice, for example while keys move between nodes.
pub(super) struct Walk<'a> {
    inner: &'a Inner,
    nodes: std::vec::IntoIter<Node>,
    /// The place of the last step.
    here: Option<WalkPlace>,
    next: Option<WalkPlace>,
    /// How many keys the server looks at in one command.
    step: usize,
    doing: &'static str,
}

/// The place where a step begins: a node, and what it said there.
#[derive(Clone, Debug)]
pub(super) struct WalkPlace {
    node: Node,
    cursor: String,
}

impl<'a> Walk<'a> {
    pub(super) async fn over(inner: &'a Inner, doing: &'static str) -> Result<Self, StoreError> {
        Self::from(inner, None, doing).await
    }

    /// Begins where another walk was. It comes by everything all the same: at last it visits the
    /// node once more on which it began. Only the node itself knows the order in which it goes over
    /// its keys.
    pub(super) async fn from(
        inner: &'a Inner,
        place: Option<WalkPlace>,
        doing: &'static str,
    ) -> Result<Self, StoreError> {
        let mut nodes = inner.link.nodes(doing).await?;
        let found = place.and_then(|place| {
            let found = nodes.iter().position(|node| *node == place.node)?;
            Some((found, place))
        });
        let next = found.map(|(found, place)| {
            nodes.rotate_left(found + 1);
            place
        });
        Ok(Self {
            inner,
            nodes: nodes.into_iter(),
            here: None,
            next,
            step: STEP,
            doing,
        })
    }

    /// Begins at a place that [`goes_on`](Self::goes_on) has told, of one server.
    pub(super) async fn at(
        inner: &'a Inner,
        place: u64,
        step: usize,
        doing: &'static str,
    ) -> Result<Self, StoreError> {
        let cursor = place.to_string();
        let begin = WalkPlace {
            node: Node::Only,
            cursor,
        };
        let walk = Self::from(inner, Some(begin), doing).await?;
        Ok(Self { step, ..walk })
    }

    /// The place of the next step on the same node; `None` where there is none.
    pub(super) fn goes_on(&self) -> Result<Option<u64>, StoreError> {
        let place = self.next.as_ref().map(|next| next.cursor.parse());
        place.transpose().map_err(|source| {
            StoreError::new(StoreErrorKind::Other, self.doing).with_source(source)
        })
    }

    /// The place of the last step.
    pub(super) fn place(self) -> Option<WalkPlace> {
        self.here
    }

    /// The ids of the next step, perhaps none; `None` at the end.
    pub(super) async fn step(&mut self) -> Result<Option<BTreeSet<RecordId>>, StoreError> {
        self.here = self.next.take().or_else(|| {
            let node = self.nodes.next()?;
            let cursor = "0".to_owned();
            Some(WalkPlace { node, cursor })
        });
        let Some(WalkPlace { node, cursor }) = &self.here else {
            return Ok(None);
        };
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor)
            .arg("MATCH")
            .arg(self.inner.prefix.pattern())
            .arg("COUNT")
            .arg(self.step)
            // A text that another program keeps under such a name is no record.
            .arg("TYPE")
            .arg("hash");
        let answer = self.inner.link.send(&scan, node, self.doing).await?;
        let (cursor, keys) = read(answer).ok_or_else(|| {
            StoreError::new(StoreErrorKind::Other, self.doing)
                .with_source("`SCAN` answered something else than keys")
        })?;
        if cursor != "0" {
            let node = node.clone();
            self.next = Some(WalkPlace { node, cursor });
        }
        Ok(Some(
            keys.iter()
                .filter_map(|key| self.inner.prefix.id(key))
                .collect(),
        ))
    }
}

fn read(answer: Value) -> Option<(String, Vec<Vec<u8>>)> {
    redis::from_redis_value(answer).ok()
}

/// Asks for each of these records, many at once, which one connection takes as they come.
pub(super) async fn each<T, F>(
    inner: &Arc<Inner>,
    ids: impl IntoIterator<Item = RecordId>,
    ask: impl Fn(Arc<Inner>, RecordId) -> F,
) -> Result<Vec<T>, StoreError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    let mut asking = JoinSet::new();
    for id in ids {
        asking.spawn(ask(Arc::clone(inner), id));
    }
    let mut answers = Vec::with_capacity(asking.len());
    while let Some(answer) = asking.join_next().await {
        match answer {
            Ok(answer) => answers.push(answer?),
            Err(ended) => std::panic::resume_unwind(ended.into_panic()),
        }
    }
    Ok(answers)
}
