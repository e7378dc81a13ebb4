//! Four eyes: proposals, and the approval of a second person.

use std::error::Error as StdError;

use async_trait::async_trait;
use idempotent_runtime::{BoxError, Time, identity::RecordId};

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

/// The trail on which people propose and approve.
#[async_trait]
pub(crate) trait Approvals: Send + Sync {
    /// Returns the proposal that an act lacks, if this is why it failed.
    fn refused(&self, error: &(dyn StdError + 'static)) -> Option<String>;
    async fn propose(
        &self,
        record: RecordId,
        proposal: &str,
        signed: (&str, &str),
    ) -> Result<(), BoxError>;
    async fn list(&self) -> Result<Vec<Proposal>, BoxError>;
    /// Fails for the person who proposed it.
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
mod audit {
    use std::error::Error as StdError;

    use async_trait::async_trait;
    use idempotent_audit::{Audit, AuditError, Signed};
    use idempotent_runtime::{BoxError, identity::RecordId};

    use super::{Approvals, NotApproved, Proposal};

    #[async_trait]
    impl Approvals for Audit {
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
