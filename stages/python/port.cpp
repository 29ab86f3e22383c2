#include "stages/python/port.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>

#include "core/clock.hpp"
#include "stages/python/frame.hpp"
#include "stages/python/gil.hpp"
#include "stages/python/join_streams.hpp"
#include "stages/python/port_frames.hpp"
#include "stages/python/streams.hpp"
#include "stages/python/taken.hpp"

namespace carousel::python {
namespace {

class latest_object {
public:
    latest_object(latest_port port, f64 patience_s)
        : port_(new latest_port(std::move(port)), owned_by{::getpid()}), patience_s_(patience_s) {}

    /// None: none came in time, or the run is over.
    py::object next(f64 timeout_s) {
        if (const pid_t owner = port_.get_deleter().process; ::getpid() != owner)
            throw std::runtime_error(
                fmt::format("what is new of \"{}\" was opened by process {}: a forked child "
                            "can't use it; open it anew there",
                            port().stage(), owner));
        if (busy_)
            throw std::runtime_error(
                fmt::format("what is new of \"{}\" is in use by a call that has not returned: a port belongs "
                            "to one thread at a time",
                            port().stage()));
        const in_use mark(busy_);
        settle();
        const u64 until = now_ns() + static_cast<u64>(std::max(0.0, timeout_s) * 1e9);
        for (;;) {
            const u64 now = now_ns();
            const f64 left = now >= until ? 0 : static_cast<f64>(until - now) / 1e9;
            latest_frame* got = nullptr;
            {
                const gil_released others;
                got = port_->next(std::min(left, longest_wait_s));
            }
            if (PyErr_CheckSignals() != 0) throw py::error_already_set();
            if (got != nullptr) return deliver(*got);
            if (port_->ended() || left <= longest_wait_s) return py::none();
        }
    }
    py::object next_of_loop() {
        py::object f = next(patience_s_);
        if (!f.is_none()) return f;
        if (port_->ended()) throw py::stop_iteration();
        throw nothing_new(fmt::format("no new frame of \"{}\" in {:.3g} s: {}", port_->stage(), patience_s_,
                                      port_->waits_for()));
    }
    [[nodiscard]] const latest_port& port() const noexcept { return *port_; }

private:
    py::object deliver(latest_frame& f) {
        held_ = std::make_shared<lease>();
        held_->sequence = f.sequence();
        held_->memory = f.memory();  // and the stream
        stream_ = f.queue().native_stream();
        if (f.where() == device_kind::cuda) {
            held_->stream = f.stream();
            held_->gpu = gpu_of(held_->stream);
        }
        return py::cast(std::make_shared<frame_object>(f, held_, port_->stage()));
    }
    // What was enqueued on other streams is in front of what the port does next, also where it reads frames
    // of a GPU that are delivered in host memory.
    void settle() {
        if (held_ && stream_ != nullptr) (void)join_or_wait(gpu_of(stream_), stream_);
        held_.reset();
    }

    struct in_use {
        bool& of;
        explicit in_use(bool& busy) : of(busy) { of = true; }
        ~in_use() { of = false; }
        in_use(const in_use&) = delete;
        in_use& operator=(const in_use&) = delete;
    };

    /// A child that was forked has none of the port's threads to end: what it got a copy of stays as it is.
    struct owned_by {
        pid_t process;
        void operator()(latest_port* p) const {
            if (::getpid() == process) delete p;
        }
    };
    std::unique_ptr<latest_port, owned_by> port_;
    f64 patience_s_;
    std::shared_ptr<lease> held_;
    void* stream_ = nullptr;  ///< that the frame was copied on; null: there is no GPU in it
    bool busy_ = false;       ///< a thread is in next()
};

py::dict losses_of(const latest_object& l) {
    const latest_losses lost = l.port().losses();
    return py::dict(py::arg("revoked") = lost.revoked, py::arg("torn") = lost.torn,
                    py::arg("voids") = lost.voids);
}

std::string describe(const latest_object& l) {
    return fmt::format("<carousel.Latest of \"{}\": {}{}>", l.port().stage(), l.port().format().describe(),
                       l.port().ended() ? ", ended: " + l.port().ending() : "");
}

}  // namespace

void bind_port(py::module_& m) {
    py::class_<latest_object>(
        m, "Latest",
        "The newest frames of a stage's output: each step of a loop is a newer one, its end is the "
        "run's. It never holds the run up.")
        .def("next", &latest_object::next, py::arg("timeout_s") = 10.0,
             "The newest frame that is newer than the last one; None when none came in so many seconds, or "
             "the run is "
             "over.")
        .def("__iter__", [](py::object self) { return self; })
        .def("__next__", &latest_object::next_of_loop)
        .def_property_readonly(
            "stage", [](const latest_object& l) { return l.port().stage(); }, "The ring that it looks at.")
        .def_property_readonly(
            "ended", [](const latest_object& l) { return l.port().ended(); }, "True when the run is over.")
        .def_property_readonly(
            "ending", [](const latest_object& l) { return l.port().ending(); },
            "How the run ended, once it has.")
        .def_property_readonly("losses", &losses_of, "Frames that were taken and not delivered, by cause.")
        .def("__repr__", &describe);
    py::class_<open_run> run(m, "Run", "A run that is open: with carousel.open(\"demo\") as run.");
    run.def(
           "latest",
           [](const open_run& r, const py::object& stage, f64 patience_s) {
               const auto name = taken<std::string>(stage, "latest(stage)", text_value);
               const gil_released others;
               return latest_object(r.latest(name, {.patience_s = patience_s}), patience_s);
           },
           py::arg("stage") = "", py::arg("patience_s") = 10.0,
           "The newest frames of what `stage` puts out; \"\": of what the last sink reads.")
        .def_property_readonly("stages", &open_run::stages, "Those that have an output.")
        .def_property_readonly("name", &open_run::name, "The run's name.")
        .def("__enter__", [](py::object self) { return self; })
        .def("__exit__", [](py::object, const py::args&) {})
        .def("__repr__", [](const open_run& r) {
            return fmt::format("<carousel.Run \"{}\": {}>", r.name(), fmt::join(r.stages(), ", "));
        });
    bind_port_frames(m, run);
    m.def(
        "open",
        [](const py::object& name, const py::object& device, f64 wait_s) {
            const auto run = taken<std::string>(name, "open(name)", text_value);
            const auto where = taken<std::string>(device, "open(device)", text_value);
            const gil_released others;
            return open(run, {.device = where, .wait_s = wait_s});
        },
        py::arg("name"), py::kw_only(), py::arg("device") = "", py::arg("wait_s") = 5.0,
        "Opens the run of that name, of this user. device: where frames are delivered; \"\": where they lie, "
        "\"cpu\", "
        "\"cuda:0\".");
}

}  // namespace carousel::python
