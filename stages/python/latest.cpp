#include "stages/python/module.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "core/clock.hpp"
#include "stages/python/frame.hpp"
#include "stages/python/gil.hpp"
#include "stages/python/shared_port.hpp"
#include "stages/python/streams.hpp"

namespace carousel::python {
namespace {

class latest_object {
public:
    latest_object(latest_port port, f64 patience_s, std::shared_ptr<run_parameters> run)
        : port_(make_shared_port(std::move(port), patience_s, std::move(run))) {}
    ~latest_object() {
        if (port_ != nullptr) try {
                close();
            } catch (const std::exception&) {  // another thread is using the port; the port is closed when
                                               // the call of that thread ends
            }
    }
    latest_object(latest_object&&) noexcept = default;
    latest_object& operator=(latest_object&&) = delete;

    /// Returns None if no frame arrived in time, or if the run is over.
    py::object next(f64 timeout_s) {
        (void)there();
        const pinned_port<latest_port> kept(port_);  // pinned because a signal handler may close the port
        const port_state<latest_port>::in_use mark(*kept);
        settle();
        const u64 until = now_ns() + static_cast<u64>(std::max(0.0, timeout_s) * 1e9);
        for (;;) {
            if (kept->interrupted) return py::none();
            const u64 now = now_ns();
            const f64 left = now >= until ? 0 : static_cast<f64>(until - now) / 1e9;
            latest_frame* got = nullptr;
            {
                const gil_released others;
                got = kept->port.next(std::min(left, longest_wait_s));
            }
            kept->may_close = true;
            const bool raised = PyErr_CheckSignals() != 0;
            kept->may_close = false;
            if (raised) throw py::error_already_set();
            (void)there();
            if (got != nullptr) return deliver(*got);
            if (kept->port.ended() || left <= longest_wait_s) return py::none();
        }
    }
    py::object next_of_loop() {
        const f64 patience_s = there().patience_s;
        py::object f = next(patience_s);
        if (!f.is_none()) return f;
        if (port().ended() || there().interrupted) throw py::stop_iteration();
        throw nothing_new(fmt::format("no new frame of \"{}\" in {:.3g} s: {}", port().stage(), patience_s,
                                      port().waits_for()));
    }
    /// Frees the port's place among the ring's observers; a delivered frame stays valid.
    void close() {
        if (port_ == nullptr) return;
        const pinned_port<latest_port> gone(port_);
        std::optional<port_state<latest_port>::in_use> mark;
        if (gone->owner.is_this()) {
            mark.emplace(*gone, true);
            settle();
        }
        port_ = nullptr;
    }
    [[nodiscard]] const latest_port& port() const { return there().port; }
    [[nodiscard]] const shared_port<latest_port>& shared() const noexcept { return port_; }
    [[nodiscard]] std::string describe() const {
        if (port_ == nullptr) return "<carousel.Latest, closed>";
        const latest_port& p = port_->port;
        return fmt::format("<carousel.Latest of \"{}\": {}{}>", p.stage(), p.format().describe(),
                           p.ended() ? ", ended: " + p.ending() : "");
    }

private:
    [[nodiscard]] port_state<latest_port>& there() const {
        if (port_ == nullptr)
            throw std::runtime_error("this Latest is closed; latest() of the run opens a new one");
        return *port_;
    }
    py::object deliver(latest_frame& f) {
        frame_lease_ = std::make_shared<lease>();
        frame_lease_->frame_number = f.frame_number();
        frame_lease_->memory = f.memory();  // and the stream
        stream_ = f.queue().native_stream();
        if (f.where() == device_kind::cuda) {
            frame_lease_->stream = f.stream();
            frame_lease_->gpu = gpu_of(frame_lease_->stream);
        }
        return py::cast(std::make_shared<frame_object>(f, frame_lease_, port().stage(), there().run));
    }
    // Work that the program has enqueued on other streams is ordered before the port's next operation, even
    // if the port delivers the frames of a GPU in host memory.
    void settle() {
        if (frame_lease_ && stream_ != nullptr) (void)join_or_wait(gpu_of(stream_), stream_);
        frame_lease_.reset();
    }

    shared_port<latest_port> port_;  ///< null: it is closed
    std::shared_ptr<lease> frame_lease_;
    void* stream_ = nullptr;  ///< the stream on which the frame was copied; null: no GPU is involved
};

py::dict losses_of(const latest_object& l) {
    const latest_losses lost = l.port().losses();
    return py::dict(py::arg("revoked") = lost.revoked, py::arg("torn") = lost.torn,
                    py::arg("tombstones") = lost.tombstones);
}

}  // namespace

void bind_latest(py::module_& m, py::class_<run_object>& run) {
    py::class_<latest_object>(
        m, "Latest",
        "The newest frames of a stage's output: each step of a loop is a newer frame; the loop ends with the "
        "run. Never blocks the run. At most eight observers per ring, over all programs.")
        .def(
            "next", &latest_object::next, py::arg("timeout_s") = 10.0,
            "The newest frame that is newer than the previous one; None after timeout_s seconds without one, "
            "or if the run has ended. Releases the GIL.")
        .def("close", &latest_object::close,
             "Frees its place for another observer of the ring. Delivered frames stay valid.")
        .def("__iter__", [](py::object self) { return self; })
        .def("__next__", &latest_object::next_of_loop)
        .def("_interrupt", [](latest_object& l, bool on) { interrupt(l.shared(), on); })
        .def("__enter__", [](py::object self) { return self; })
        .def("__exit__", [](latest_object& l, const py::args&) { l.close(); })
        .def_property_readonly(
            "stage", [](const latest_object& l) { return l.port().stage(); }, "The ring that it observes.")
        .def_property_readonly(
            "ended", [](const latest_object& l) { return l.port().ended(); }, "True if the run has ended.")
        .def_property_readonly(
            "ending", [](const latest_object& l) { return l.port().ending(); },
            "How the run ended, after its end.")
        .def_property_readonly("losses", &losses_of, "Frames that were read but not delivered, by cause.")
        .def("__repr__", &latest_object::describe);
    run.def(
        "latest",
        [](run_object& r, const py::object& stage, f64 patience_s) {
            const auto name = checked_cast<std::string>(stage, "latest(stage)", text_value);
            const open_run of = r.there();
            auto port = [&] {
                const gil_released others;
                return of.latest(name, {.patience_s = patience_s});
            }();
            return r.opened(latest_object(std::move(port), patience_s, r.parameters()));
        },
        py::arg("stage") = "", py::arg("patience_s") = 10.0,
        "Opens the newest frames of the output of `stage`; \"\": of the input of the last sink. patience_s: "
        "seconds that one step of a loop waits before it raises NothingNew. Raises ConfigError for a ring "
        "that does not exist, and Error if all eight places of its observers are taken.");
}

}  // namespace carousel::python
