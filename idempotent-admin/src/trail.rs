//! An audit trail, whatever its database: the entries of a record, proposals, and their approval.

use std::error::Error as StdError;

use async_trait::async_trait;
use idempotent_runtime::{BoxError, Time, identity::RecordId, record::Version};

/// A proposal of the last 24 hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub(crate) number: i64,
    pub(crate) record: RecordId,
    pub(crate) text: String,
    pub(crate) by: String,
    pub(crate) because: String,
    /// Those who approved it.
    pub(crate) approved_by: Vec<String>,
    pub(crate) until: Time,
}

/// An entry of a record, as its timeline shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: Time,
    pub(crate) kind: String,
    pub(crate) step: Option<String>,
    pub(crate) states: (Option<String>, Option<String>),
    /// The person, or else the process.
    pub(crate) by: String,
    pub(crate) because: Option<String>,
    /// The user of the database.
    pub(crate) user: Option<String>,
    /// The batch in which it is sealed.
    pub(crate) batch: Option<i64>,
}

/// The last verification of the trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verification {
    pub(crate) text: String,
    pub(crate) at: Option<Time>,
    pub(crate) holds: bool,
}

/// The trail on which people propose and approve.
#[async_trait]
pub(crate) trait AnyTrail: Send + Sync {
    /// Returns the newest entries of a record, the newest first.
    async fn timeline(&self, record: RecordId) -> Result<Vec<Line>, BoxError>;
    /// Returns the proposal that an act lacks, if this is why it failed.
    fn refused(&self, error: &(dyn StdError + 'static)) -> Option<String>;
    async fn propose(
        &self,
        record: RecordId,
        proposal: &str,
        signed: (&str, &str),
    ) -> Result<(), BoxError>;
    async fn list(&self) -> Result<Vec<Proposal>, BoxError>;
    /// Whether a proposal is about this version of its record.
    fn is_of(&self, proposal: &str, version: Version) -> bool;
    /// Fails for the person who proposed or approved it.
    async fn approve(&self, number: i64, signed: (&str, &str)) -> Result<(), NotApproved>;
}

/// The reason why nothing was approved.
#[cfg_attr(
    not(feature = "audit"),
    expect(dead_code, reason = "without an audit nothing is approved")
)]
pub(crate) enum NotApproved {
    /// It may not be, for this reason.
    Refused(String),
    /// The database did not answer.
    Failed(BoxError),
}

#[cfg(feature = "audit")]
pub(crate) use self::audit::last;

#[cfg(feature = "audit")]
mod audit {
    /// How many entries a timeline shows.
    const MOST: u32 = 200;

    use std::error::Error as StdError;

    use async_trait::async_trait;
    use idempotent_audit::{Audit, AuditError, Signed, TimelineEntry, Verifications};
    use idempotent_runtime::{BoxError, identity::RecordId, record::Version};

    use super::{AnyTrail, Line, NotApproved, Proposal, Verification};

    /// The last verification of a task, in words.
    pub(crate) fn last(verifications: &Verifications) -> Verification {
        let last = verifications.last();
        if verifications.is_late() {
            return Verification {
                text: "The audit trail is not verified any more: its task has ended, or hangs."
                    .to_owned(),
                at: last.map(|last| last.at),
                holds: false,
            };
        }
        Verification {
            text: last.as_ref().map_or_else(
                || "The audit trail is being verified for the first time.".to_owned(),
                ToString::to_string,
            ),
            at: last.as_ref().map(|last| last.at),
            holds: last.is_none_or(|last| last.holds()),
        }
    }

    fn line(entry: TimelineEntry) -> Line {
        let by = entry.by.or(entry.holder).unwrap_or_default();
        Line {
            at: entry.at,
            kind: entry.kind,
            step: entry.step,
            states: (entry.before, entry.after),
            by,
            because: entry.because,
            user: entry.db_user,
            batch: entry.batch,
        }
    }

    #[async_trait]
    impl AnyTrail for Audit {
        async fn timeline(&self, record: RecordId) -> Result<Vec<Line>, BoxError> {
            let entries = Self::timeline(self, record, MOST).await?;
            Ok(entries.into_iter().map(line).collect())
        }

        fn refused(&self, error: &(dyn StdError + 'static)) -> Option<String> {
            idempotent_audit::Proposal::refused(error).map(|it| it.to_string())
        }

        async fn propose(
            &self,
            record: RecordId,
            proposal: &str,
            (by, because): (&str, &str),
        ) -> Result<(), BoxError> {
            let propose = Self::propose(self, record, proposal.parse()?);
            Ok(propose.by(by).because(because).await?)
        }

        fn is_of(&self, proposal: &str, version: Version) -> bool {
            let proposal = proposal.parse::<idempotent_audit::Proposal>();
            proposal.is_ok_and(|it| it.is_of(version))
        }

        async fn list(&self) -> Result<Vec<Proposal>, BoxError> {
            let name = |signed: &Signed| match (&signed.by, &signed.db_user) {
                (Some(by), _) => by.clone(),
                (None, Some(user)) => user.clone(),
                (None, None) => "a person without a name".to_owned(),
            };
            let proposals = self.proposals().await?.into_iter().map(|it| Proposal {
                number: it.number,
                record: it.record,
                text: it.proposal.to_string(),
                by: name(&it.signed),
                because: it.signed.because.clone(),
                approved_by: it.approved.iter().map(name).collect(),
                until: it.until,
            });
            Ok(proposals.collect())
        }

        async fn approve(
            &self,
            number: i64,
            (by, because): (&str, &str),
        ) -> Result<(), NotApproved> {
            let failed = |error| match error {
                AuditError::InvalidAct(why) => NotApproved::Refused(why.to_owned()),
                error => NotApproved::Failed(error.into()),
            };
            let approve = Self::approve(self, number, by).await.map_err(failed)?;
            approve.because(because).await.map_err(failed)
        }
    }
}
