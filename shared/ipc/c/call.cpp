#include "ipc/c/call.hpp"

#include <new>

#include "core/resource_limit.hpp"
#include "ipc/type_tag.hpp"
#include "ipc/wait_check.hpp"

namespace carousel::ipc::c {
namespace {

std::string& last_error() noexcept {
    thread_local std::string of_thread;
    return of_thread;
}

carousel_status store(carousel_status status, const char* text) noexcept {
    try {
        last_error() = text;
    } catch (const std::bad_alloc&) {
        last_error().clear();
    }
    return status;
}

}  // namespace

carousel_status failed() noexcept {
    const bool ended = std::exchange(this_thread_wait_check().ended, false);
    try {
        throw;
    } catch (const failure& e) {
        return store(e.status(), e.what());
    } catch (const timed_out& e) {
        if (ended) return store(CAROUSEL_INTERRUPTED, "the thread's wait check has ended the wait");
        return store(CAROUSEL_TIMED_OUT, e.what());
    } catch (const no_holder& e) {
        if (ended) return store(CAROUSEL_INTERRUPTED, "the thread's wait check has ended the wait");
        return store(CAROUSEL_NO_HOLDER, e.what());
    } catch (const config_error& e) {
        return store(CAROUSEL_REFUSED, e.what());
    } catch (const out_of_resources& e) {
        return store(CAROUSEL_OUT_OF_MEMORY, e.what());
    } catch (const shm_error& e) {
        return store(CAROUSEL_SHARED_MEMORY, e.what());
    } catch (const device_error& e) {
        return store(CAROUSEL_DEVICE, e.what());
    } catch (const cuda_error& e) {
        return store(CAROUSEL_DEVICE, e.what());
    } catch (const std::bad_alloc&) {
        return store(CAROUSEL_OUT_OF_MEMORY, "no memory is left");
    } catch (const std::exception& e) {
        try {
            return store(CAROUSEL_INTERNAL, unexpected_text(e).c_str());
        } catch (...) {
            return store(CAROUSEL_INTERNAL, "");
        }
    } catch (...) {
        return store(CAROUSEL_INTERNAL, "an unknown exception");
    }
}

carousel_status not_at_once(const std::string& name) noexcept {
    try {
        last_error() = "\"" + name + "\": not possible at once, and the timeout is 0";
    } catch (const std::bad_alloc&) {
        last_error().clear();
    }
    return CAROUSEL_TIMED_OUT;
}

nanoseconds timeout_of(i64 timeout_ns) {
    if (timeout_ns == CAROUSEL_NO_LIMIT) return nanoseconds::max();
    if (timeout_ns < 0)
        throw failure(CAROUSEL_INVALID_ARGUMENT, "a timeout of " + std::to_string(timeout_ns) +
                                                     " ns: expected 0 or more, or CAROUSEL_NO_LIMIT (-1)");
    return nanoseconds(timeout_ns);
}

u64 type_of(const char* name) { return name == nullptr || *name == '\0' ? 0 : tag_of_name(name); }

}  // namespace carousel::ipc::c

using namespace carousel::ipc;

const char* carousel_space_library_version(void) { return CAROUSEL_VERSION; }

const char* carousel_last_error(void) { return c::last_error().c_str(); }

const char* carousel_status_name(carousel_status status) {
    constexpr const char* names[] = {"CAROUSEL_OK",
                                     "CAROUSEL_TIMED_OUT",
                                     "CAROUSEL_INTERRUPTED",
                                     "CAROUSEL_INVALID_ARGUMENT",
                                     "CAROUSEL_NO_HOLDER",
                                     "CAROUSEL_REFUSED",
                                     "CAROUSEL_NOT_HELD",
                                     "CAROUSEL_FORKED",
                                     "CAROUSEL_SHARED_MEMORY",
                                     "CAROUSEL_DEVICE",
                                     "CAROUSEL_OUT_OF_MEMORY",
                                     "CAROUSEL_INTERNAL"};
    const auto k = static_cast<std::size_t>(status);
    return k < std::size(names) ? names[k] : "?";
}

void carousel_set_wait_check(int (*check)(void*), void* with) {
    this_thread_wait_check() = {check, with, false};
}
