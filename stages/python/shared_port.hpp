#pragma once
// A C++ port used by a Python program, with its current frame. Used under the GIL, which is released while
// the port waits.

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <carousel/port.hpp>
#include "core/process.hpp"
#include "stages/python/frame.hpp"
#include "stages/python/gil.hpp"
#include "stages/python/lease.hpp"
#include "stages/python/run_object.hpp"

namespace carousel::python {

/// A C++ port and its current frame.
template <typename Port>
struct port_state {
    port_state(Port p, f64 patience, std::shared_ptr<run_parameters> of)
        : port(std::move(p)), patience_s(patience), run(std::move(of)) {}

    Port port;
    f64 patience_s;
    std::shared_ptr<run_parameters> run;  ///< for the port's frames
    std::optional<writer_frame> filling;  ///< a writer's uncommitted frame
    /// lease of the current frame, or of a dropped frame of which arrays still exist; null: there is neither
    std::shared_ptr<lease> frame_lease;
    std::weak_ptr<frame_object> frame;  ///< the current frame
    const owner_process owner;
    bool busy = false;         ///< a call is in progress; this call may have released the GIL
    bool may_close = false;    ///< true if a signal handler that runs during a wait may close the port
    bool interrupted = false;  ///< while true, waits return without a frame (package/carousel/_async.py)
    bool warned = false;       ///< a warning was logged that the driver can't join all streams

    void require_owner() const {
        if (!owner.is_this())
            throw std::runtime_error(fmt::format(
                "port \"{}\" was opened by process {}: a forked child can't use it; open another port there",
                port.stage(), owner.pid()));
    }
    void enter() const {
        require_owner();
        if (busy)
            throw std::runtime_error(
                fmt::format("port \"{}\" is in use by a call that has not returned: a port belongs to one "
                            "thread at a time",
                            port.stage()));
    }
    /// While this object exists, the port can be used neither by another thread nor by Python code that
    /// happens to run during the call.
    struct in_use {
        port_state& of;
        const bool before;
        explicit in_use(port_state& h, bool closes = false) : of(h), before(h.busy) {
            if (!closes || !of.may_close) of.enter();
            of.busy = true;
            of.may_close = false;
        }
        ~in_use() { of.busy = before; }
        in_use(const in_use&) = delete;
        in_use& operator=(const in_use&) = delete;
    };
    /// Called without the GIL, and excludes concurrent use.
    template <typename F>
    auto alone(F&& f) {
        const in_use mark(*this);
        const gil_released others;
        return f();
    }
    /// Requires that no array of the current frame, or of a dropped frame, exists; otherwise throws an error
    /// with the name of the array's plane.
    void require_released(const char* what) {
        const auto held_plane = [&] {
            if (frame_lease->arrays > 0) return frame_lease->last_plane;
            if (const std::shared_ptr<frame_object> f = frame.lock()) return f->outlived();
            // The frame object no longer exists, but an owner of the lease still has a plane, and may have
            // an array of this plane that isn't counted.
            return frame_lease->exported_by_cai && frame_lease.use_count() > 1 ? frame_lease->last_plane
                                                                               : std::string();
        };
        if (!frame_lease || held_plane().empty()) return;
        py::module_::import("gc").attr("collect")();  // the object may exist only because a reference cycle
                                                      // contains it
        if (const std::string plane = held_plane(); !plane.empty())
            throw error(exit_code::stage_exception,
                        fmt::format("an array of plane \"{}\" of frame {} is held beyond {}: its memory is "
                                    "reused for another frame; delete it before (del x), or keep a copy "
                                    "(array.copy(), tensor.clone(), frame.copy())",
                                    plane, frame_lease->frame_number, what));
    }
};

template <typename Port>
using shared_port = std::shared_ptr<port_state<Port>>;

/// While `on` is true, the port's current wait and each later wait return without a frame, within
/// longest_wait_s.
template <typename Port>
void interrupt(const shared_port<Port>& port, bool on) {
    if (port != nullptr) port->interrupted = on;  // null: the port is closed
}

/// Keeps a port during a call in which Python may close the port. The last reference is released without the
/// GIL, because the port waits for its device.
template <typename Port>
class pinned_port {
public:
    explicit pinned_port(shared_port<Port> port) : port_(std::move(port)) {}
    ~pinned_port() {
        if (port_.use_count() > 1) return;
        const gil_released others;
        port_.reset();
    }
    pinned_port(const pinned_port&) = delete;
    pinned_port& operator=(const pinned_port&) = delete;
    [[nodiscard]] port_state<Port>& operator*() const noexcept { return *port_; }
    [[nodiscard]] port_state<Port>* operator->() const noexcept { return port_.get(); }

private:
    shared_port<Port> port_;
};

// A forked child has neither the port's thread nor the port's seat, so the child's copy of the port is left
// untouched.
template <typename Port>
shared_port<Port> make_shared_port(Port port, f64 patience_s, std::shared_ptr<run_parameters> run) {
    return {new port_state<Port>(std::move(port), patience_s, std::move(run)),
            delete_by_owner<port_state<Port>>{}};
}

}  // namespace carousel::python
