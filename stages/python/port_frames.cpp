#include "stages/python/module.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>

#include "core/clock.hpp"
#include "stages/python/frame.hpp"
#include "stages/python/gil.hpp"
#include "stages/python/shared_port.hpp"
#include "stages/python/streams.hpp"

namespace carousel::python {
namespace {

/// A frame that a port's program has taken and not yet committed.
template <typename Port>
class port_frame_object : public frame_object {
public:
    port_frame_object(shared_port<Port> of, std::shared_ptr<lease> frame_lease, const port_frame& f,
                      std::function<frame_metadata()> metadata)
        : frame_object(std::move(frame_lease), values_of(f, std::move(metadata))), port_(std::move(of)) {
        set_parameters(port_->run, f.parameter_bytes());
    }
    void commit() {
        require_not_ended("commit()");
        const pinned_port<Port> port(port_);
        // Python code that runs during this call (in a garbage collection or a warning's filter) can't close
        // the port.
        const typename port_state<Port>::in_use mark(*port);
        port->require_released("commit()");
        join_streams();
        end_planes();
        try {
            const gil_released others;
            give();
        } catch (const output_error&) {  // the disk is full; the program may call commit() again
            lease_->ended = false;
            throw;
        } catch (...) {
            detach_frame();
            throw;
        }
        detach_frame();
    }
    void detach_from_port() noexcept override {
        if (outlived().empty()) lease_->memory.reset();
        port_.reset();
    }
    void set_hash(u64 hash, const std::string& name) override {
        require_not_ended("set_hash()");
        note_hash(hash, name);
    }
    [[nodiscard]] bool is_live() const noexcept { return !lease_->ended; }
    /// Called when the run has taken the frame back, or issues another frame with the same number. After
    /// this call the port may end or start another incarnation; either of these destroys the stream on which
    /// the frame's work was enqueued.
    void detach_frame() noexcept {
        lease_->stream = nullptr;
        if (outlived().empty()) port_->frame_lease.reset();
        detach_from_port();
    }

protected:
    virtual void give() = 0;
    virtual void note_hash(u64, const std::string&) {
        throw std::runtime_error("set_hash() is for the frame of a reader");
    }
    void end_planes() noexcept { lease_->ended = true; }
    // Called after the program has enqueued its work, on any stream, and before the port's final check.
    void join_streams() {
        if (lease_->gpu < 0 || join_or_wait(lease_->gpu, lease_->stream) || port_->warned) return;
        port_->warned = true;
        if (PyErr_WarnEx(PyExc_RuntimeWarning, slower_streams, 1) != 0) throw py::error_already_set();
    }

    shared_port<Port> port_;
};

class read_frame final : public port_frame_object<reader_port> {
public:
    read_frame(shared_port<reader_port> of, std::shared_ptr<lease> frame_lease, reader_frame& f,
               const std::vector<std::string>& inputs)
        : port_frame_object(std::move(of), std::move(frame_lease), f, [this] { return frame_->metadata(); }),
          frame_(&f) {
        for (std::size_t k = 0; k < inputs.size(); ++k) add_input(f.input(k), inputs[k]);
    }

private:
    void give() override { frame_->commit(); }
    void note_hash(u64 hash, const std::string& name) override { frame_->set_hash(hash, name); }
    reader_frame* frame_;  ///< owned by the port
};

class written_frame final : public port_frame_object<writer_port> {
public:
    written_frame(const shared_port<writer_port>& of, std::shared_ptr<lease> frame_lease)
        : port_frame_object(of, std::move(frame_lease), *of->filling, [this] {
              port_->require_owner();
              return port_->filling->metadata();
          }) {
        add_output(port_->filling->output(), "");
        // A frame keeps its port until the frame ends, so a plain pointer is sufficient.
        for (const payload_object& output : outputs_)
            for (const auto& plane : output.planes)
                if (plane->take_used)
                    plane->take_used = [port = of.get(), take = std::move(plane->take_used)](
                                           const std::vector<u64>& elements) {
                        port->require_owner();
                        take(elements);
                    };
    }
    void set_capture_ns(u64 ns) override {
        require_not_ended("capture_ns");
        port_->require_owner();
        port_->filling->set_capture_ns(ns);
        values_.set_capture_ns(ns);
    }
    void drop() {
        require_not_ended("drop()");
        const pinned_port<writer_port> port(port_);
        const port_state<writer_port>::in_use mark(*port);
        join_streams();
        end_planes();
        port->filling.reset();
        detach_frame();
    }

private:
    void give() override {
        port_->filling->commit();
        port_->filling.reset();
    }
};

template <typename Port>
class port_object {
public:
    port_object(Port port, f64 patience_s, std::shared_ptr<run_parameters> run)
        : port_(make_shared_port(std::move(port), patience_s, std::move(run))) {}

    [[nodiscard]] port_state<Port>& there() const {
        if (port_ == nullptr) throw std::runtime_error("the port is closed");
        return *port_;
    }
    [[nodiscard]] const shared_port<Port>& shared() const noexcept { return port_; }
    /// Takes a frame; returns nothing if none arrived in time, or if the run is over. `step` is next() of the
    /// port with a timeout.
    template <typename Step>
    bool wait(f64 timeout_s, Step&& step) {
        (void)there();
        const pinned_port<Port> kept(port_);  // pinned because a signal handler may close the port
        const typename port_state<Port>::in_use mark(*kept);
        const u64 until = now_ns() + static_cast<u64>(std::max(0.0, timeout_s) * 1e9);
        for (;;) {
            if (kept->interrupted) return false;
            const u64 now = now_ns();
            const f64 left = now >= until ? 0 : static_cast<f64>(until - now) / 1e9;
            const bool got = [&] {
                const gil_released others;
                return step(*kept, std::min(left, longest_wait_s));
            }();
            if (got) return true;
            kept->may_close = true;
            const bool raised = PyErr_CheckSignals() != 0;
            kept->may_close = false;
            if (raised) throw py::error_already_set();
            if (there().port.ended() || left <= longest_wait_s) return false;
        }
    }
    std::shared_ptr<lease> lease_frame(const port_frame& f) {
        port_state<Port>& h = there();
        h.frame_lease = std::make_shared<lease>();
        h.frame_lease->frame_number = f.frame_number();
        h.frame_lease->memory = port_;
        if (f.where() == device::device_kind::cuda) {
            h.frame_lease->stream = f.stream();
            h.frame_lease->gpu = gpu_of(h.frame_lease->stream);
        }
        return h.frame_lease;
    }
    /// Closes the port. The port's seat is given back at once, or, if arrays of its frame still exist, when
    /// the last of these arrays is released.
    void close() {
        if (port_ == nullptr) return;
        const pinned_port<Port> gone(port_);
        detach_port(*gone);
        port_ = nullptr;
    }
    ~port_object() {
        if (port_ != nullptr) try {
                close();
            } catch (const std::exception&) {  // another thread is using the port; the port is closed when
                                               // the call of that thread ends
            }
    }
    port_object(port_object&&) noexcept = default;
    port_object& operator=(port_object&&) = delete;

private:
    void detach_port(port_state<Port>& h) {
        std::optional<typename port_state<Port>::in_use> mark;
        if (h.owner.is_this()) mark.emplace(h, true);
        if (h.frame_lease) h.frame_lease->ended = true;
        // The lease keeps the port exactly as long as an array of the lease's frame exists.
        const std::shared_ptr<lease> last = std::move(h.frame_lease);
        h.frame_lease = nullptr;
        const std::shared_ptr<frame_object> seen = h.frame.lock();
        // The frame's memory is released with the port, and enqueued work may still read this memory. Work
        // for a committed frame was ordered before the commit.
        if (last) last->join();
        if (last && last->arrays == 0 && (last->gpu < 0 || (seen && seen->outlived().empty())))
            last->memory.reset();
        if (seen) seen->detach_from_port();
    }

    shared_port<Port> port_;
};

class reader_object : public port_object<reader_port> {
public:
    using port_object::port_object;
    py::object next(f64 timeout_s) {
        reader_frame* got = nullptr;
        if (!wait(timeout_s, [&](auto& h, f64 s) { return (got = h.port.next(s)) != nullptr; }))
            return py::none();
        auto f = std::make_shared<read_frame>(shared(), lease_frame(*got), *got, there().port.inputs());
        there().frame = f;
        return py::cast(std::move(f));
    }
};

class writer_object : public port_object<writer_port> {
public:
    using port_object::port_object;
    py::object next(f64 timeout_s) {
        abandon_frame("next()");
        const bool got = wait(timeout_s, [](auto& h, f64 s) {
            h.filling.reset();
            h.filling.emplace(h.port.next(s));
            return static_cast<bool>(*h.filling);
        });
        if (!got) return py::none();
        auto f = std::make_shared<written_frame>(shared(), lease_frame(*there().filling));
        there().frame = f;
        return py::cast(std::move(f));
    }
    void end() {
        abandon_frame("end()");
        (void)there();
        const pinned_port<writer_port> kept(shared());
        kept->alone([&] { kept->port.end(); });
    }

private:
    // If the current frame was not committed, its number is issued again, with another frame object. An array
    // of this frame, or of a dropped one, would refer to the memory of the next frame; that memory is
    // unmapped when the port ends.
    void abandon_frame(const char* what) {
        (void)there();
        const pinned_port<writer_port> h(shared());
        const port_state<writer_port>::in_use mark(*h);
        if (!h->frame_lease) return;
        h->require_released(what);
        h->frame_lease->join();
        const std::shared_ptr<lease> last = std::move(h->frame_lease);
        h->frame_lease = nullptr;
        last->ended = true;
        last->stream = nullptr;
        h->filling.reset();
        if (const std::shared_ptr<frame_object> f = h->frame.lock()) f->detach_from_port();
        last->memory.reset();
    }
};

template <typename Object>
py::object next_of_loop(Object& o) {
    py::object f = o.next(o.there().patience_s);
    if (!f.is_none()) return f;
    if (o.there().port.ended() || o.there().interrupted) throw py::stop_iteration();
    o.there().port.throw_wait_timeout();
}

template <typename Object>
std::string describe(const Object& o, const char* what) {
    if (o.shared() == nullptr) return fmt::format("<carousel.{}, closed>", what);
    const auto& p = o.shared()->port;
    return fmt::format("<carousel.{} \"{}\": {}{}>", what, p.stage(), p.format().describe(),
                       p.ended() ? ", ended" : "");
}

template <typename Object>
py::class_<Object> bind_class(py::module_& m, const char* name, const char* text, const char* next) {
    return py::class_<Object>(m, name, text)
        .def("next", &Object::next, py::arg("timeout_s") = 10.0, next)
        .def("close", &Object::close, "Releases the port; the current frame goes to the next program.")
        .def("__iter__", [](py::object self) { return self; })
        .def("__next__", &next_of_loop<Object>)
        .def("_interrupt", [](Object& o, bool on) { interrupt(o.shared(), on); })
        .def("__enter__", [](py::object self) { return self; })
        .def("__exit__", [](Object& o, const py::args&) { o.close(); })
        .def_property_readonly(
            "stage", [](const Object& o) { return o.there().port.stage(); }, "The port's name.")
        .def_property_readonly(
            "ended", [](const Object& o) { return o.there().port.ended(); },
            "True if no further frame will be delivered.")
        .def("__repr__", [name](const Object& o) { return describe(o, name); });
}

/// The exit of `with frame:` commits, unless an exception was raised.
template <typename Frame>
void leave(Frame& f, const py::object& raised) {
    if (!f.is_live()) return;
    if (raised.is_none()) return f.commit();
    if constexpr (std::is_same_v<Frame, written_frame>) f.drop();
}

template <typename Frame>
py::class_<Frame, frame_object, std::shared_ptr<Frame>> bind_frame_class(py::module_& m, const char* name,
                                                                         const char* text,
                                                                         const char* commit) {
    return py::class_<Frame, frame_object, std::shared_ptr<Frame>>(m, name, text)
        .def("commit", &Frame::commit, commit)
        .def("__enter__", [](py::object self) { return self; })
        .def("__exit__", [](Frame& f, const py::object& raised, const py::object&, const py::object&) {
            leave(f, raised);
        });
}

/// Arguments of reader() and writer(): the port's name, and the planes that the program expects.
std::pair<std::string, port_options> port_request(const py::object& name, const py::object& planes,
                                                  f64 patience_s) {
    return {
        checked_cast<std::string>(name, "the name of a port", text_value),
        {.patience_s = patience_s,
         .planes = checked_cast<std::map<std::string, std::string>>(planes, "planes", "a dict of texts")}};
}

reader_object make_port_object(reader_port port, f64 patience_s, std::shared_ptr<run_parameters> run) {
    return {std::move(port), patience_s, std::move(run)};
}
writer_object make_port_object(writer_port port, f64 patience_s, std::shared_ptr<run_parameters> run) {
    return {std::move(port), patience_s, std::move(run)};
}

/// Calls `take`, which is reader() or writer() of the run, to take the seat; the GIL is released while this
/// call waits.
template <typename Take>
py::object open_port(run_object& r, Take take, const std::pair<std::string, port_options>& request) {
    const open_run of = r.there();
    auto port = [&] {
        const gil_released others;
        return (of.*take)(request.first, request.second);
    }();
    return r.opened(make_port_object(std::move(port), request.second.patience_s, r.parameters()));
}

}  // namespace

void bind_port_frames(py::module_& m, py::class_<run_object>& run) {
    bind_frame_class<read_frame>(
        m, "ReaderFrame",
        "A frame of a reader, until its commit(). `with frame:` commits it, unless an exception is raised.",
        "Marks the frame as read, exactly once. No array of the frame may still be held. Raises "
        "PortRevoked.");
    bind_frame_class<written_frame>(m, "WriterFrame",
                                    "A frame to fill, until its commit(). `with frame:` commits it; after an "
                                    "exception its number is used again.",
                                    "Publishes the frame to the downstream stages. No array of the frame may "
                                    "still be held. Raises PortRevoked.")
        .def("drop", &written_frame::drop, "Discards the frame: its number is used again.");
    bind_class<reader_object>(
        m, "Reader",
        "A reading port: every frame exactly once, in order. Each step of a loop is "
        "the next frame, which must be committed; the loop ends with the run. `async "
        "for` waits without blocking the event loop. A port belongs to one thread at "
        "a time.",
        "The next frame; None after timeout_s seconds without one, or if the run has ended. Releases the "
        "GIL. Refused if the previous frame has not been committed. Raises PortRevoked.");
    bind_class<writer_object>(
        m, "Writer",
        "A writing port. Each step of a loop is a frame to fill; the loop ends with the run. `async for` "
        "waits without blocking the event loop. A port belongs to one thread at a time.",
        "The next frame to fill; None if the ring had no free slot for timeout_s seconds, or if the run has "
        "ended. Releases the GIL. A frame that was not committed is dropped. Raises PortRevoked.")
        .def("end", &writer_object::end,
             "The stream ends before the next frame, or before the current one. The port needs `ends = true` "
             "in the pipeline file.");
    run.def(
           "reader",
           [](run_object& r, const py::object& name, const py::object& planes, f64 patience_s) {
               return open_port(r, &open_run::reader, port_request(name, planes, patience_s));
           },
           py::arg("name"), py::kw_only(), py::arg("planes") = py::dict(), py::arg("patience_s") = 10.0,
           "Opens the reading port `name`. planes: the planes that this program expects, e.g. {\"color\": "
           "\"u8[720,1280,4]\"}; others are refused. patience_s: seconds that one step of a loop waits "
           "before "
           "it raises NothingNew. Raises ConfigError, with the cause, if the port does not exist, has other "
           "planes, or belongs to another program.")
        .def(
            "writer",
            [](run_object& r, const py::object& name, const py::object& planes, f64 patience_s) {
                return open_port(r, &open_run::writer, port_request(name, planes, patience_s));
            },
            py::arg("name"), py::kw_only(), py::arg("planes") = py::dict(), py::arg("patience_s") = 10.0,
            "Opens the writing port `name`, in the same way.");
}

}  // namespace carousel::python
