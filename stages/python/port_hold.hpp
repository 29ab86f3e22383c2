#pragma once
// A port of C++ in the hands of a Python program, and the frame of it that is lent. Used under the GIL, which
// is others' while the port waits.

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <carousel/port.hpp>
#include "stages/python/frame.hpp"
#include "stages/python/lease.hpp"

namespace carousel::python {

/// A port of C++ and what of it is lent.
template <typename Port>
struct hold {
    hold(Port p, f64 patience) : port(std::move(p)), patience_s(patience) {}

    Port port;
    f64 patience_s;
    std::optional<writer_frame> filling;  ///< a writer's frame in hand
    std::shared_ptr<lease> lent;          ///< of the frame in hand, or of the last one
    std::weak_ptr<frame_object> frame;    ///< that one
    const pid_t owner = ::getpid();
    bool busy = false;    ///< a thread is in it without the GIL
    bool warned = false;  ///< of a driver that can't join all streams

    void enter() {
        if (::getpid() != owner)
            throw std::runtime_error(
                fmt::format("port \"{}\" was opened by process {}: a forked child can't use it; open another "
                            "one there",
                            port.stage(), owner));
        if (busy)
            throw std::runtime_error(
                fmt::format("port \"{}\" is in use by another thread: a port belongs to one thread at a time",
                            port.stage()));
    }
    /// Without the GIL, and nobody else meanwhile.
    template <typename F>
    auto alone(F&& f) {
        enter();
        struct mark {
            bool& of;
            explicit mark(bool& b) : of(b) { of = true; }
            ~mark() { of = false; }
        } const marked(busy);
        const py::gil_scoped_release others;
        return f();
    }
    /// Nobody has an array of the frame in hand; else what it is of is told.
    void require_let_go(const char* what) {
        const auto held = [&] {
            if (lent->arrays > 0) return lent->last_plane;
            const std::shared_ptr<frame_object> f = frame.lock();
            return f ? f->outlived() : std::string();
        };
        if (!lent || held().empty()) return;
        py::module_::import("gc").attr("collect")();  // it may only be in a cycle
        if (const std::string plane = held(); !plane.empty())
            throw error(exit_code::stage_exception,
                        fmt::format("an array of plane \"{}\" of frame {} is held beyond {}: its memory is "
                                    "another frame's next; let go of it before (del x), or keep a copy "
                                    "(array.copy(), tensor.clone(), frame.copy())",
                                    plane, lent->sequence, what));
    }
};

template <typename Port>
using shared_hold = std::shared_ptr<hold<Port>>;

// A child that was forked has neither the port's thread nor its place: what it got a copy of stays as it is.
template <typename Port>
shared_hold<Port> make_hold(Port port, f64 patience_s) {
    return {new hold<Port>(std::move(port), patience_s), [](hold<Port>* h) {
                if (::getpid() == h->owner) delete h;
            }};
}

}  // namespace carousel::python
