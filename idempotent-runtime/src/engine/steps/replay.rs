//! Runs a body over steps that are recorded, and no step's body.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use crate::{
    record::{Step, StepName},
    value::lock,
};

/// How a body differs from the steps that are recorded of an earlier run of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepDifference {
    /// A step has other arguments.
    Changed {
        /// The literal part of its name.
        step: String,
        /// The names of the arguments that differ, where they can be told apart.
        differing: Vec<String>,
    },
    /// The body comes to steps that are not recorded, and not to all that are.
    New {
        /// The literal parts of the names of the steps that are not recorded.
        steps: Vec<String>,
        /// Those of the steps that are recorded and that it did not come to.
        missing: Vec<String>,
    },
    /// The body ends without having come to all steps that are recorded.
    Missing {
        /// The literal parts of their names.
        steps: Vec<String>,
    },
}

impl fmt::Display for StepDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepDifference::Changed { step, differing } => {
                write!(f, "the step `{step}` has other arguments {differing:?}")
            }
            StepDifference::New { steps, missing } => {
                write!(f, "the body comes to {steps:?} and not to {missing:?}")
            }
            StepDifference::Missing { steps } => {
                write!(f, "the body ends without {steps:?}")
            }
        }
    }
}

impl std::error::Error for StepDifference {}

/// The steps that are recorded, and how far a body has come in them.
#[derive(Debug)]
pub(crate) struct Replay {
    recorded: BTreeMap<StepName, Arc<Step>>,
    course: Mutex<ReplayProgress>,
    moved: Notify,
}

#[derive(Debug, Default)]
struct ReplayProgress {
    met: BTreeSet<StepName>,
    new: Vec<String>,
    changed: Option<StepDifference>,
}

impl Replay {
    pub(crate) fn of(steps: &[Arc<Step>]) -> Self {
        let steps = steps.iter().map(|step| (step.name, Arc::clone(step)));
        Self {
            recorded: steps.collect(),
            course: Mutex::default(),
            moved: Notify::new(),
        }
    }

    /// The step of this name, where it has an outcome.
    pub(crate) fn find(&self, name: &StepName) -> Option<Arc<Step>> {
        let has_ended = |step: &&Arc<Step>| has_ended(step);
        self.recorded.get(name).filter(has_ended).map(Arc::clone)
    }

    /// A step answers.
    pub(crate) fn met(&self, name: StepName) {
        lock(&self.course).met.insert(name);
        self.moved.notify_one();
    }

    /// A step has no outcome.
    pub(crate) fn is_new(&self, label: &str) {
        lock(&self.course).new.push(label.to_owned());
        self.moved.notify_one();
    }

    pub(crate) fn differs(&self, difference: StepDifference) {
        lock(&self.course).changed.get_or_insert(difference);
        self.moved.notify_one();
    }

    /// Resolves when a step has moved.
    pub(crate) async fn moved(&self) {
        self.moved.notified().await;
    }

    fn missing(&self, course: &ReplayProgress) -> Vec<String> {
        let ended = self.recorded.values().filter(|step| has_ended(step));
        let missing = ended.filter(|step| !course.met.contains(&step.name));
        missing.map(|step| step.label.to_string()).collect()
    }

    /// Whether nothing more can be found: a step differs, or all that are recorded were met and the
    /// body stands at one that is not.
    pub(crate) fn is_over(&self) -> bool {
        let course = lock(&self.course);
        let is_through = self.missing(&course).is_empty() && !course.new.is_empty();
        course.changed.is_some() || is_through
    }

    /// The first difference; `None` where the body came to every step that is recorded.
    pub(crate) fn difference(&self) -> Option<StepDifference> {
        let course = lock(&self.course);
        if course.changed.is_some() {
            return course.changed.clone();
        }
        let (steps, missing) = (course.new.clone(), self.missing(&course));
        match (missing.is_empty(), steps.is_empty()) {
            (true, _) => None,
            (false, true) => Some(StepDifference::Missing { steps: missing }),
            (false, false) => Some(StepDifference::New { steps, missing }),
        }
    }
}

fn has_ended(step: &Step) -> bool {
    step.state.has_ended()
}
