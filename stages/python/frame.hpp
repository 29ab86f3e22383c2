#pragma once
// A frame as a Python object. A stage's frame is valid while process() or finish() runs. The frame of a
// reader or a writer is valid until its commit. A frame of `sampled` is valid for as long as it is
// referenced, and a copy is valid without limit. Used only under the GIL.

#include <pybind11/pybind11.h>
#include <carousel/port.hpp>
#include <carousel/stage.hpp>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stages/python/plane.hpp"

namespace carousel::python {

/// The properties that every frame has, whether a stage, a port or `latest` delivers it.
struct frame_values : shm::frame_meta {
    std::function<frame_metadata()> metadata;  ///< returns the current ones
};
template <typename Frame>
[[nodiscard]] frame_values values_of(const Frame& f, std::function<frame_metadata()> metadata) {
    return {f.meta(), std::move(metadata)};
}

/// The planes of one input, or of an output.
struct payload_object {
    std::string name;  ///< for an input: the producer's name; for an output: the output's name, "" if the
                       ///< output has no name
    std::vector<std::shared_ptr<plane_object>> planes;
    [[nodiscard]] std::shared_ptr<plane_object> find(std::string_view wanted) const;
};

class run_parameters;

class frame_object {
public:
    /// A stage's frame. `inputs`: the producers' names; `writable`: the stage requests writable inputs;
    /// `outputs`: the names of the stage's own outputs.
    frame_object(frame& of, std::shared_ptr<lease> frame_lease, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs, const parameter_schema& schema,
                 bool writable = false);
    /// The newest frame of a sampled input. This frame ends together with the stage's own frame for which it
    /// was taken.
    frame_object(const sampled_frame& of, std::shared_ptr<lease> frame_lease, const std::string& name,
                 const parameter_schema& schema);
    /// A frame of `latest`.
    frame_object(const latest_frame& of, std::shared_ptr<lease> frame_lease, const std::string& stage,
                 std::shared_ptr<run_parameters> run);
    virtual ~frame_object() = default;
    frame_object(const frame_object&) = delete;
    frame_object& operator=(const frame_object&) = delete;

    [[nodiscard]] const shm::frame_meta& meta() const noexcept { return values_; }
    [[nodiscard]] u64 frame_number() const noexcept { return values_.frame_number; }
    [[nodiscard]] f64 time_s() const noexcept { return values_.time_s; }
    [[nodiscard]] u64 born_ns() const noexcept { return values_.born_ns; }
    [[nodiscard]] u64 capture_ns() const noexcept { return values_.capture_ns; }
    virtual void set_capture_ns(u64 ns);
    /// Returns the frame's current metadata; throws frame_ended.
    [[nodiscard]] frame_metadata metadata() const;
    [[nodiscard]] py::object stream() const;  ///< the cudaStream_t as an integer; None on the CPU
    [[nodiscard]] py::object parameters() const;
    [[nodiscard]] std::string tombstone_reason() const;
    /// Returns the object that the stage keeps from process() to finish() of this frame. Throws
    /// std::runtime_error outside a stage.
    [[nodiscard]] py::object local() const;
    /// Sets the address at which that object is stored; the stage has one such place per lane. The place
    /// contains a null object until the object is first requested.
    void store_local_in(py::object* place) noexcept { local_ = place; }
    [[nodiscard]] const std::vector<payload_object>& inputs() const noexcept { return inputs_; }
    [[nodiscard]] const std::vector<payload_object>& outputs() const noexcept { return outputs_; }
    /// Adds the states before and after this frame; for a frame in process() of a stage with state.
    void add_state(const frame_state& s);
    [[nodiscard]] const payload_object& previous_state() const noexcept { return previous_state_; }
    [[nodiscard]] const payload_object& next_state() const noexcept { return next_state_; }
    [[nodiscard]] bool first_state() const noexcept { return first_state_; }
    /// Returns the plane of that name: an input's plane, or, for "out", "out_PLANE", "out_OUTPUT" and
    /// "out_OUTPUT_PLANE", an output's plane, by the same rules as for arguments
    /// (package/carousel/_outputs.py). Throws key_error.
    [[nodiscard]] std::shared_ptr<plane_object> plane(const std::string& name) const;
    /// Returns the newest frame of that sampled input; null: there was none.
    [[nodiscard]] std::shared_ptr<frame_object> sampled(const std::string& name);
    [[nodiscard]] std::shared_ptr<frame_object> copy() const;
    void end_stream();
    virtual void set_hash(u64 hash, const std::string& name);
    [[nodiscard]] std::string describe() const;
    /// Returns the name of a plane of which an array still exists; empty: there is no such array.
    [[nodiscard]] std::string outlived() const;
    [[nodiscard]] lease& frame_lease() const noexcept { return *lease_; }
    /// Called when a frame of a port has ended: releases the frame's reference to the port. Arrays of the
    /// frame keep their own references.
    virtual void detach_from_port() noexcept {}
    void end() noexcept {
        lease_->ended = true;
        of_ = nullptr;
    }

protected:
    frame_object(std::shared_ptr<lease> frame_lease, frame_values values)
        : lease_(std::move(frame_lease)), values_(std::move(values)) {}
    [[nodiscard]] frame& in_stage(const char* what) const;
    [[nodiscard]] std::string parameters_json() const;
    /// For a frame of a port: `bytes` are the parameters with which the frame was made; `run` has their
    /// layout.
    void set_parameters(std::shared_ptr<run_parameters> run, std::span<const std::byte> bytes);
    void require_not_ended(const char* what) const;
    void add_input(const input_payload& planes, const std::string& stage, bool writable = false);
    void add_output(const output_payload& planes, const std::string& name);
    [[nodiscard]] payload_object planes_of(const input_payload& planes, const std::string& name,
                                           bool writable) const;
    [[nodiscard]] std::vector<std::shared_ptr<plane_object>> written_as(const std::string& argument) const;

    frame* of_ = nullptr;          ///< null for a frame of a port, a copy, or a frame that has ended
    py::object* local_ = nullptr;  ///< null for a frame of a port or a copy
    std::shared_ptr<lease> lease_;
    frame_values values_;
    std::string parameters_;                    ///< JSON; "": not known
    const parameter_schema* schema_ = nullptr;  ///< null for a frame of a port or a copy
    /// set only for a sampled frame, and valid as long as that frame is
    std::span<const std::byte> sampled_parameters_ = {};
    /// set for a port's frame and its copies; null for a stage's frame
    std::shared_ptr<run_parameters> run_;
    std::vector<std::byte> port_parameters_;
    std::vector<payload_object> inputs_, outputs_;
    payload_object previous_state_, next_state_;  ///< without planes: the stage has no state
    bool first_state_ = false;
    std::map<std::string, std::shared_ptr<frame_object>>
        sampled_frames_;  ///< the sampled frames requested so far, by name
};

void bind_frame(py::module_& m);

// A frame's metadata for Python: carousel/_metadata.py presents them as a dict.

void bind_metadata(py::class_<frame_object, std::shared_ptr<frame_object>>& frame);

}  // namespace carousel::python
