//! The use of a connection by a request.

use std::sync::Arc;

/// A connection, as those see it who use it.
pub(crate) trait CountUses: Send + Sync {
    /// One more request uses it. If its answer is `expected`, no thread waits for it there.
    fn enter(&self, is_expected: bool);

    /// A request that had entered so is answered.
    fn leave(&self, is_expected: bool);
}

/// A request's use of a connection, until it is answered.
pub(crate) struct ConnectionUse {
    connection: Arc<dyn CountUses>,
    /// The number of the connection.
    index: usize,
    is_expected: bool,
}

impl ConnectionUse {
    /// One of the connection with the number `index`. If its answer is `expected`, no thread waits for it
    /// there.
    pub(crate) fn new(connection: Arc<dyn CountUses>, index: usize, is_expected: bool) -> Self {
        connection.enter(is_expected);
        Self { connection, index, is_expected }
    }

    /// The number of the connection.
    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        self.connection.leave(self.is_expected);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use undercroft_block::testing::{Fault, FaultyDevice};
    use undercroft_block::{Bio, BlockDevice, Buffer, MemoryDevice, Operation, Plug, Sector};

    use crate::client;
    use crate::server::{Export, Listener, Server, Settings};

    /// All are of one thread, whose connection has more than the server takes at a time.
    #[test]
    fn requests_that_are_too_many_for_one_connection_use_the_others() {
        const READS: u64 = 40;
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let late = Fault::new().on(Operation::Read).late(Duration::from_secs(1));
        let disk = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new(1 << 20)), [late]));
        let export = Export::new("disk", Arc::clone(&disk) as _);
        let listener = Listener::unix(&socket).unwrap();
        let server = Server::start(vec![listener], vec![export], Settings::default()).unwrap();
        let uri = format!("nbd+unix:///disk?socket={}&x-connections=3", socket.display());
        let leaf = Arc::new(client::open(&uri.parse().unwrap(), true, None).unwrap());
        let device: Arc<dyn BlockDevice> = Arc::clone(&leaf) as _;
        let plug = Plug::new(&device);
        let read = |number| {
            // With a gap between two, so that they stay so many.
            let (bio, waiter) = Bio::read(Sector(2 * number), Buffer::zeroed(512)).waited();
            plug.submit(bio);
            waiter
        };
        let reads: Vec<_> = (0..READS).map(read).collect();
        plug.flush();
        while disk.injected() < READS {
            std::thread::yield_now();
        }
        let loads = || leaf.driver().shared.turns.iter().map(|turn| turn.load());
        assert!(loads().all(|load| load > 0), "{:?}", loads().collect::<Vec<_>>());
        reads.into_iter().for_each(|read| read.wait().result.unwrap());
        assert_eq!(loads().sum::<usize>(), 0);
        drop((leaf, device, plug));
        server.stop().unwrap();
    }
}
