//! Tasks that wait.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Caller;
use crate::place::Place;
use crate::tag::Tag;
use crate::wait::Signal;

/// The future of [`Caller::get_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct GetAsync<'a> {
    caller: &'a mut Caller,
    place: Option<Place>,
}

impl Caller {
    /// A tag, when there is one. For any executor. May be dropped at any moment: a tag is taken only
    /// when the future is ready, and a wake-up that came too late goes to the next waiter.
    pub fn get_async(&mut self) -> GetAsync<'_> {
        GetAsync { caller: self, place: None }
    }
}

impl Future for GetAsync<'_> {
    type Output = Tag;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Tag> {
        let this = &mut *self;
        let signal = || Signal::Task(context.waker().clone());
        match this.place.take() {
            None => {
                if let Some(tag) = this.caller.try_get() {
                    return Poll::Ready(tag);
                }
                let place = this.caller.publish(signal());
                if let Some(tag) = this.caller.second_look() {
                    return Poll::Ready(this.caller.end_wait(place, tag));
                }
                this.place = Some(place);
            }
            Some(mut place) => {
                if !place.is_woken_or_tell(signal()) {
                    this.place = Some(place);
                    return Poll::Pending;
                }
                if let Some(tag) = this.caller.answer(&mut place) {
                    return Poll::Ready(this.caller.end_wait(place, tag));
                }
                place.publish_again(signal());
                if let Some(tag) = this.caller.second_look() {
                    return Poll::Ready(this.caller.end_wait(place, tag));
                }
                place.sleep_again();
                this.place = Some(place);
            }
        }
        this.caller.count_sleep();
        Poll::Pending
    }
}
