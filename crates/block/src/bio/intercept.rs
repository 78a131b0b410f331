//! Devices that want to know how a bio ended before its submitter does.

use super::body::{Bio, Receiver};
use super::error::BlockError;
use super::operation::Operation;
use crate::memory::Buffer;

impl Bio {
    /// Calls `interceptor` when the bio is answered, instead of its receiver: with the bio, which
    /// has its receiver again, and how it ended. The interceptor answers the bio
    /// ([`answer`](Self::answer)), or submits it once more.
    ///
    /// The bio has the address that it had last; a read has its buffer, unless it timed out (see
    /// [`renew_memory`](Self::renew_memory)); other memory may be gone.
    /// Interceptors run as [callbacks](Self::on_complete) do.
    pub fn intercept(
        &mut self,
        interceptor: impl FnOnce(Self, Result<(), BlockError>) + Send + 'static,
    ) {
        let receiver = std::mem::replace(&mut self.inner.receiver, Receiver::None);
        self.inner.receiver = Receiver::Interceptor(Box::new(move |mut bio: Self, result| {
            bio.inner.receiver = receiver;
            interceptor(bio, result);
        }));
    }

    /// Gives a read that timed out below new memory, to be submitted once more: its own is with a
    /// driver that may still write it.
    pub fn renew_memory(&mut self) {
        if self.operation() == Operation::Read && self.inner.buffer.is_none() {
            // As long as the buffer was, whose length is a usize.
            self.inner.buffer = Some(Buffer::zeroed(self.length() as usize));
        }
    }

    /// Ends the bio as `result` says; an error gets the addresses of the submitter.
    pub fn answer(self, result: Result<(), BlockError>) {
        let (sector, length) = (self.origin(), self.length());
        self.finish(result.map_err(|error| error.at(sector, length)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::bio::Reason;
    use crate::units::Sector;

    #[test]
    fn an_interceptor_may_try_again_and_change_the_answer() {
        let (mut bio, waiter) = Bio::read(Sector(7), Buffer::zeroed(512)).waited();
        bio.remap(Sector(100));
        bio.intercept(|mut bio, result| {
            assert!(result.is_err());
            assert_eq!((bio.sector(), bio.origin()), (Sector(100), Sector(7)));
            bio.intercept(Bio::answer);
            bio.remap(Sector(200));
            bio.succeed();
        });
        bio.fail("first", Reason::ReadOnly);
        let completion = waiter.wait();
        assert_eq!(completion.sector, Sector(7));
        assert_eq!(completion.into_buffer().unwrap().len(), 512);
    }

    #[test]
    fn a_bio_lost_by_an_interceptor_is_answered() {
        let (mut bio, waiter) = Bio::flush().waited();
        bio.intercept(|bio, _| drop(bio));
        bio.succeed();
        assert!(matches!(waiter.wait().result.unwrap_err().reason, Reason::Abandoned));
    }

    #[test]
    fn many_interceptors_do_not_nest() {
        let (mut bio, waiter) = Bio::flush().waited();
        let order = Arc::new(Mutex::new(0));
        for number in (0..100_000).rev() {
            let order = Arc::clone(&order);
            bio.intercept(move |bio, result| {
                assert_eq!(std::mem::replace(&mut *order.lock(), number + 1), number);
                bio.answer(result);
            });
        }
        bio.succeed();
        assert!(waiter.wait().result.is_ok());
    }
}
