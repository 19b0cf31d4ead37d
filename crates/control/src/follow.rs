//! Following a controller: connect, take what was missed, then every change, and begin again when the connection is lost.

use crate::address::Address;
use crate::client::{Client, ClientError};
use crate::protocol::FollowRequest;
use crate::table::FollowedTable;
use crate::tls;
use std::time::Duration;
use tokio::sync::watch;
use weftwire_linux::reach::Reach;

/// The first pause after a lost connection; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Which switch of which controller to be.
#[derive(Clone, Debug)]
pub struct Follower {
    /// The controller.
    pub address: Address,
    /// How it and this switch know each other, if they are to.
    pub tls: Option<tls::Client>,
    /// Who connects to it, if that is a Unix socket.
    pub reach: Reach,
    /// The switch's name in the controller's network.
    pub switch: String,
    /// The digest of the formats' text, see [`crate::state::formats_digest`].
    pub formats: [u8; 32],
}

/// What happens while following.
#[derive(Clone, Debug)]
pub enum Notice {
    /// The table is as the controller has it, for the first time since the connection was made.
    UpToDate,
    /// A change has been made.
    Changed,
    /// The connection was lost, or could not be made; the table stays as it is.
    Lost(ClientError),
}

impl Follower {
    /// Follows for ever. `notice` is told what happens.
    pub async fn follow(&self, table: &mut FollowedTable, mut notice: impl FnMut(Notice, &FollowedTable)) {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut first = true;
            let lost = self.session(table, |table| {
                notice(if first { Notice::UpToDate } else { Notice::Changed }, table);
                first = false;
                true
            });
            if let Err(error) = lost.await {
                notice(Notice::Lost(error), table);
            }
            pause = if first { (pause * 2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
            tokio::time::sleep(pause).await;
        }
    }

    /// Brings the table up to date once.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn fetch(&self, table: &mut FollowedTable) -> Result<(), ClientError> {
        self.session(table, |_| false).await
    }

    /// One connection, as long as `go_on` says so after each change.
    async fn session(
        &self,
        table: &mut FollowedTable,
        mut go_on: impl FnMut(&FollowedTable) -> bool,
    ) -> Result<(), ClientError> {
        table.restart();
        let client = Client::connect_by(&self.address, self.tls.as_ref(), &self.reach).await?;
        let say = |table: &FollowedTable| FollowRequest {
            switch: self.switch.clone(),
            formats: self.formats.to_vec(),
            configuration: table.configuration().to_vec(),
            revision: table.revision(),
            refusal: table.refusal().unwrap_or_default(),
        };
        let (said, saying) = watch::channel(say(table));
        let mut updates = client.follow(saying).await?;
        while let Some(update) = updates.message().await? {
            if table.take(update).map_err(ClientError::Table)? {
                said.send_replace(say(table));
                if !go_on(table) {
                    return Ok(());
                }
            }
        }
        Err(ClientError::Ended)
    }
}
