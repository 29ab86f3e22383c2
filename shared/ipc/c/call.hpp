#pragma once
// What every function of <carousel/space.h> shares: the checks of its arguments, the conversion of exceptions
// to a status, and the text of the calling thread's last failure.

#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "core/types.hpp"
#include "ipc/attachment.hpp"
#include "ipc/c/carousel/space.h"
#include "ipc/handles.hpp"
#include "ipc/wait_check.hpp"

namespace carousel::ipc::c {

/// A failure with a status of its own.
class failure : public std::runtime_error {
public:
    failure(carousel_status status, const std::string& message)
        : std::runtime_error(message), status_(status) {}
    [[nodiscard]] carousel_status status() const noexcept { return status_; }

private:
    carousel_status status_;
};

/// Stores the text of the exception that is being handled, for carousel_last_error(), and returns its status.
[[nodiscard]] carousel_status failed() noexcept;
/// The text of a call that would have had to wait.
[[nodiscard]] carousel_status not_at_once(const std::string& name) noexcept;

/// Runs `body`, which returns a status.
template <class Body>
[[nodiscard]] carousel_status call(Body body) noexcept {
    this_thread_wait_check().ended = false;
    try {
        return body();
    } catch (...) {
        return failed();
    }
}

/// Every handle begins with this: which kind it is of, and the space that it keeps open. The mark is cleared
/// when the handle ends, so a handle that is used afterwards is often, but not always, detected.
struct handle {
    handle(u32 kind, std::shared_ptr<attachment> space) : mark(kind), to(std::move(space)) {}
    u32 mark;
    std::shared_ptr<attachment> to;
};

/// Throws failure if the handle is null, has ended, is of another kind, or belongs to the parent process.
template <class Handle>
Handle& valid(Handle* h, const char* what) {
    if (h == nullptr)
        throw failure(CAROUSEL_INVALID_ARGUMENT, std::string(what) + ": null was passed instead of a handle");
    if (h->mark != Handle::kind)
        throw failure(CAROUSEL_INVALID_ARGUMENT,
                      std::string(what) + ": the handle has ended, or is of another kind");
    if (!h->to->is_here())
        throw failure(CAROUSEL_FORKED, std::string(what) +
                                           ": the handle belongs to the parent of this process: open the "
                                           "space again in the child");
    return *h;
}

template <class T>
T& required(T* pointer, const char* what) {
    if (pointer == nullptr) throw failure(CAROUSEL_INVALID_ARGUMENT, std::string(what) + ": null was passed");
    return *pointer;
}

inline void require_bytes(const void* bytes, const char* what) {
    if (bytes == nullptr) throw failure(CAROUSEL_INVALID_ARGUMENT, std::string(what) + ": null was passed");
}

/// The timeout for the primitives. Throws failure for negative values other than CAROUSEL_NO_LIMIT.
[[nodiscard]] nanoseconds timeout_of(i64 timeout_ns);
/// The tag of a type's name; null: any type.
[[nodiscard]] u64 type_of(const char* name);

/// Ends a handle that is not null.
template <class Handle>
[[nodiscard]] carousel_status end(Handle* h, const char* what) noexcept {
    return call([&] {
        if (h == nullptr) return CAROUSEL_OK;
        static_cast<volatile u32&>(valid(h, what).mark) = 0;  // otherwise removed as a store before delete
        delete h;
        return CAROUSEL_OK;
    });
}

inline void require_size(std::size_t size, const char* what) {
    if (size < sizeof(std::size_t) * 2)
        throw failure(CAROUSEL_INVALID_ARGUMENT,
                      std::string(what) + ": the member `size` has to be set to the size of the structure");
}

/// Copies as much of `from` as the caller's structure has room for.
template <class T>
void fill(T* to, T from, const char* what) {
    const std::size_t size = required(to, what).size;
    require_size(size, what);
    from.size = size;
    std::memcpy(static_cast<void*>(to), &from, size < sizeof(T) ? size : sizeof(T));
}

/// Runs a wait: `once` for a timeout of 0, which returns false if it is not possible at once, else `wait`.
template <class Once, class Wait>
[[nodiscard]] carousel_status attempt(i64 timeout_ns, const std::string& name, Once once, Wait wait) {
    const nanoseconds t = timeout_of(timeout_ns);
    if (t.count() == 0) return once() ? CAROUSEL_OK : not_at_once(name);
    wait(t);
    return CAROUSEL_OK;
}

}  // namespace carousel::ipc::c
