//! What the commands of this door are asked.
use sardonyx_question::{Bytes, Given, Place, Question, question};
use sardonyx_store::Named;

question! {
    /// Serve a deduplicating store as a block device (NBD) until Ctrl-C, and count what it takes.
    ///
    /// What a client has flushed survives the end of the server, however it comes. Needs nbdkit.
    ///
    /// Example: sardonyx store serve --size 1G --socket disk.sock --dir disk
    pub struct StoreServe {
        /// The Unix socket to make, where clients connect.
        #[schemars(extend("needed" = true))]
        socket: Place,
        /// The folder that holds the store; made if new.
        #[schemars(extend("needed" = true))]
        dir: Place,
        /// What counts the cost: recam or conventional; by default the first.
        design: Option<String>,
        /// Size of a new device, as 1G.
        size: Option<Bytes>,
        /// Block of a new device. Default: 4K.
        block: Option<Bytes>,
        /// A new file for the requests, with digests and without contents, which `store compare --trace` runs.
        trace: Option<Place>,
    }
}

question! {
    /// Read every block and compare it with its checksum, and count its references.
    ///
    /// Changes nothing, so it works on a copy and on a folder that cannot be written. One line a fault; the exit status is
    /// 1 if there is any. Nobody may serve the folder meanwhile.
    ///
    /// Example: sardonyx store check disk
    pub struct StoreCheck {
        /// The folder of `store serve`.
        #[schemars(extend("argument" = "DIR", "needed" = true))]
        folder: Place,
    }
}

impl Question for StoreServe {
    fn check(&self, _given: &Given) -> Result<(), String> {
        match &self.design {
            Some(name) => Named::find(name)
                .map(|_| ())
                .map_err(|error| format!("--design: {error}")),
            None => Ok(()),
        }
    }
}

impl Question for StoreCheck {}
