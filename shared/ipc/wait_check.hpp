#pragma once
// A check that ends the waits of the calling thread early, for example because a signal has to be handled.
// It is called before each sleep of a wait, that is, at least every 100 ms. A wait that it ends behaves as at
// its timeout; `ended` distinguishes the two.

namespace carousel::ipc {

struct wait_check {
    int (*check)(void*) = nullptr;  ///< returns a value other than 0 to end the wait; null: no check
    void* with = nullptr;
    bool ended = false;  ///< set if the check has ended a wait; the code that starts a wait resets it
};

/// Returns the check of the calling thread.
[[nodiscard]] wait_check& this_thread_wait_check() noexcept;
/// Calls the check of the calling thread; returns true if the wait has to end.
[[nodiscard]] bool wait_is_ended() noexcept;

}  // namespace carousel::ipc
