#include "stages/python/frame.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <cctype>
#include <span>

#include "core/user_input.hpp"

#include "core/json.hpp"
#include "stages/python/gil.hpp"
#include "stages/python/run_object.hpp"

namespace carousel::python {
namespace {

/// Metadata that outlives the frame: a copy of the bytes.
std::function<frame_metadata()> retained_metadata(std::span<const std::byte> bytes) {
    return [kept = std::vector<std::byte>(bytes.begin(), bytes.end())] { return frame_metadata(kept); };
}

/// Returns an output's name in the form that is used as a part of an argument's name.
std::string spelled(std::string word) {
    for (char& c : word)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return word;
}

py::dict dict_of(const payload_object& p) {
    py::dict d;
    for (const auto& plane : p.planes) d[py::str(plane->name())] = plane;
    return d;
}

}  // namespace

std::shared_ptr<plane_object> payload_object::find(std::string_view wanted) const {
    for (const auto& plane : planes)
        if (plane->name() == wanted) return plane;
    return nullptr;
}

frame_object::frame_object(frame& of, std::shared_ptr<lease> frame_lease,
                           const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                           const parameter_schema& schema, bool writable)
    : frame_object(std::move(frame_lease), values_of(of, [this] { return of_->metadata(); })) {
    of_ = &of;
    schema_ = &schema;
    if (!of.tombstone_reason().empty()) return;  // it has no image
    for (std::size_t k = 0; k < inputs.size(); ++k) add_input(of.input(k), inputs[k], writable);
    for (std::size_t k = 0; k < outputs.size(); ++k) add_output(of.output(k), outputs[k]);
}

frame_object::frame_object(const latest_frame& of, std::shared_ptr<lease> frame_lease,
                           const std::string& stage, std::shared_ptr<run_parameters> run)
    : frame_object(std::move(frame_lease), values_of(of, retained_metadata(of.metadata().bytes()))) {
    set_parameters(std::move(run), of.parameter_bytes());
    add_input(of.planes(), stage);
}

frame_object::frame_object(const sampled_frame& of, std::shared_ptr<lease> frame_lease,
                           const std::string& name, const parameter_schema& schema)
    : frame_object(std::move(frame_lease), values_of(of, retained_metadata(of.metadata().bytes()))) {
    schema_ = &schema;
    sampled_parameters_ = of.parameter_bytes();
    add_input(of.payload(), name);
}

std::shared_ptr<frame_object> frame_object::sampled(const std::string& name) {
    if (const auto known = sampled_frames_.find(name); known != sampled_frames_.end()) return known->second;
    const sampled_frame sampled = in_stage("sampled()").sampled(name);
    return sampled_frames_[name] =
               sampled ? std::make_shared<frame_object>(sampled, lease_, name, *schema_) : nullptr;
}

// An input's planes have the used extents of this frame as their shape.
void frame_object::add_input(const input_payload& planes, const std::string& stage, bool writable) {
    inputs_.push_back(planes_of(planes, stage, writable));
}

payload_object frame_object::planes_of(const input_payload& planes, const std::string& name,
                                       bool writable) const {
    payload_object out{name, {}};
    if (!planes) return out;
    for (const ring::plane& each : planes.format().planes)
        out.planes.push_back(std::make_shared<plane_object>(
            lease_, const_cast<std::byte*>(planes.slot()) + each.offset, planes.in_use(each.name), writable));
    return out;
}

void frame_object::add_state(const frame_state& s) {
    previous_state_ = planes_of(s.previous(), "state", false);
    next_state_ = planes_of(s.next(), "state", true);
    first_state_ = s.first();
}

void frame_object::add_output(const output_payload& planes, const std::string& name) {
    outputs_.push_back({name, {}});
    if (!planes) return;
    for (const ring::plane& each : planes.format().planes) {
        auto plane = std::make_shared<plane_object>(lease_, planes.slot() + each.offset, each, true);
        if (planes.used() != nullptr)
            plane->take_used = [used = planes.used(), format = &planes.format(),
                                name = each.name](const std::vector<u64>& elements) {
                ring::set_used(*used, *format, name, elements);
            };
        outputs_.back().planes.push_back(std::move(plane));
    }
}

void frame_object::require_not_ended(const char* what) const {
    if (lease_->ended)
        throw frame_ended(
            fmt::format("{} of frame {} was accessed after its frame ended", what, values_.frame_number));
}

frame_metadata frame_object::metadata() const {
    require_not_ended("metadata");
    return values_.metadata ? values_.metadata() : frame_metadata();
}

frame& frame_object::in_stage(const char* what) const {
    require_not_ended(what);
    if (of_ == nullptr)
        throw std::runtime_error(
            fmt::format("{} is only valid for the frame of a stage, but frame {} is not the frame of a stage",
                        what, values_.frame_number));
    return *of_;
}

py::object frame_object::stream() const {
    if (lease_->ended || lease_->stream == nullptr) return py::none();
    return py::int_(reinterpret_cast<std::uintptr_t>(lease_->stream));
}

std::string frame_object::parameters_json() const {
    if (!parameters_.empty()) return parameters_;
    require_not_ended("parameters");
    const bool is_sampled = of_ == nullptr && schema_ != nullptr;
    const auto bytes = run_         ? std::span<const std::byte>(port_parameters_)
                       : is_sampled ? sampled_parameters_
                                    : in_stage("parameters").parameter_bytes();
    const parameter_schema& schema = run_ ? run_->schema() : *schema_;
    return schema ? schema.values_json(bytes).dump() : "{}";
}

void frame_object::set_parameters(std::shared_ptr<run_parameters> run, std::span<const std::byte> bytes) {
    run_ = std::move(run);
    port_parameters_.assign(bytes.begin(), bytes.end());
}

py::object frame_object::parameters() const {
    return py::module_::import("json").attr("loads")(parameters_json());
}

py::object frame_object::local() const {
    (void)in_stage("local");
    if (local_ == nullptr) return py::none();
    if (!*local_) *local_ = py::module_::import("types").attr("SimpleNamespace")();
    return *local_;
}

std::string frame_object::tombstone_reason() const {
    return of_ == nullptr ? "" : std::string(of_->tombstone_reason());
}

// An output's name takes precedence over a plane's.
std::vector<std::shared_ptr<plane_object>> frame_object::written_as(const std::string& argument) const {
    std::vector<std::shared_ptr<plane_object>> by_output, by_plane;
    for (const payload_object& output : outputs_) {
        const std::string own = output.name.empty() ? "out" : "out_" + spelled(output.name);
        for (const auto& plane : output.planes) {
            const bool alone = output.planes.size() == 1 && argument == own;
            if (alone || (!output.name.empty() && argument == own + "_" + plane->name()))
                by_output.push_back(plane);
            if (argument == "out_" + plane->name()) by_plane.push_back(plane);
        }
    }
    return by_output.empty() ? by_plane : by_output;
}

std::shared_ptr<plane_object> frame_object::plane(const std::string& name) const {
    std::vector<std::shared_ptr<plane_object>> found;
    for (const payload_object& input : inputs_)
        if (auto plane = input.find(name)) found.push_back(std::move(plane));
    const bool is_input = !found.empty();
    if (!is_input) found = written_as(name);
    if (auto plane = previous_state_.find(name)) return plane;
    if (auto plane = name.starts_with("out_") ? next_state_.find(name.substr(4)) : nullptr) return plane;
    if (found.size() == 1) return found.front();
    std::vector<std::string> names;
    for (const payload_object& input : inputs_)
        for (const auto& plane : input.planes) names.push_back(plane->name());
    if (const std::string reason = tombstone_reason(); !reason.empty())
        throw py::key_error(
            fmt::format("frame {} is a tombstone and has no planes: {}", values_.frame_number, reason));
    throw py::key_error(found.empty()
                            ? fmt::format("the frame has no plane \"{}\"; there are {}{}", name,
                                          names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                                          did_you_mean_clause(name, names))
                        : is_input ? fmt::format("{} inputs have a plane \"{}\", so name the input: "
                                                 "frame.inputs[0][\"{}\"] is the plane of the first",
                                                 found.size(), name, name)
                                   : fmt::format("\"{}\" is a plane of {} outputs, so name the output: "
                                                 "frame.outputs[\"{}\"] has the planes of the first",
                                                 name, found.size(), outputs_.front().name));
}

std::shared_ptr<frame_object> frame_object::copy() const {
    auto frame_lease = std::make_shared<lease>();
    frame_lease->frame_number = values_.frame_number;
    auto out = std::shared_ptr<frame_object>(
        new frame_object(std::move(frame_lease), values_of(*this, retained_metadata(metadata().bytes()))));
    if (run_)
        out->set_parameters(run_, port_parameters_);
    else
        out->parameters_ = schema_ != nullptr ? parameters_json() : parameters_;
    for (const payload_object& input : inputs_) {
        out->inputs_.push_back({input.name, {}});
        for (const auto& plane : input.planes) out->inputs_.back().planes.push_back(plane->to_host());
    }
    return out;
}

void frame_object::set_capture_ns(u64 ns) {
    in_stage("capture_ns").set_capture_ns(ns);
    values_.set_capture_ns(ns);
}
void frame_object::end_stream() { in_stage("end_stream()").end_stream(); }
void frame_object::set_hash(u64 hash, const std::string& name) {
    in_stage("set_hash()").set_hash(hash, name);
}

std::string frame_object::describe() const {
    std::string planes;
    const auto add = [&planes](const std::string& name, const plane_object& plane) {
        planes += fmt::format("{}{}: {}{}", planes.empty() ? "" : ", ", name, plane.type(),
                              py::str(plane.shape()).cast<std::string>());
    };
    for (const payload_object& input : inputs_)
        for (const auto& plane : input.planes) add(plane->name(), *plane);
    for (const payload_object& output : outputs_)
        for (const auto& plane : output.planes)
            add((output.name.empty() ? "out_" : "out_" + spelled(output.name) + "_") + plane->name(), *plane);
    return fmt::format("<carousel.Frame {} {{{}}}{}>", values_.frame_number, planes,
                       lease_->ended ? ", ended" : "");
}

// If a plane was exported by __cuda_array_interface__, an array may still use the plane, and this module gets
// no call when such an array is released.
std::string frame_object::outlived() const {
    if (lease_->arrays > 0) return lease_->last_plane;
    const auto plane_in_use = [](const payload_object& p) -> std::string {
        for (const auto& plane : p.planes)
            if ((plane->is_exported_by_cai() && plane.use_count() > 1) || plane->bytes_are_shared())
                return plane->name();
        return "";
    };
    for (const payload_object& input : inputs_)
        if (std::string name = plane_in_use(input); !name.empty()) return name;
    for (const auto& [sampled, f] : sampled_frames_)
        if (std::string name = f ? f->outlived() : ""; !name.empty()) return name;
    for (const payload_object& output : outputs_)
        if (std::string name = plane_in_use(output); !name.empty()) return name;
    for (const payload_object* const state : {&previous_state_, &next_state_})
        if (std::string name = plane_in_use(*state); !name.empty()) return name;
    return "";
}

void bind_frame(py::module_& m) {
    py::class_<frame_object, std::shared_ptr<frame_object>> frame(
        m, "Frame",
        "A frame: the argument of a stage's function, or a frame that a port delivers. frame[\"color\"] is a "
        "plane.");
    frame
        .def_property_readonly("frame_number", &frame_object::frame_number,
                               "The number of the frame, from 0: the same in every stage and on every host.")
        .def_property_readonly(
            "time_s", &frame_object::time_s,
            "Time of the frame in the stream, in seconds: frame_number / fps, or the time in a recording.")
        .def_property_readonly("born_ns", &frame_object::born_ns,
                               "CLOCK_MONOTONIC, in nanoseconds, when its source started it; 0: unknown.")
        .def_property(
            "capture_ns", &frame_object::capture_ns,
            [](frame_object& f, const py::object& ns) {
                f.set_capture_ns(checked_cast<u64>(ns, "capture_ns", whole_number));
            },
            "CLOCK_MONOTONIC of its capture, in nanoseconds; 0: not set. A source, or a writer, sets it.")
        .def_property_readonly(
            "metadata",
            [](const py::object& f) { return py::module_::import("carousel._metadata").attr("Metadata")(f); },
            "Small named values, as a dict: bool, int, float, str, bytes. They are sent with the frame.")
        .def_property_readonly("stream", &frame_object::stream,
                               "The cudaStream_t as a number; None on the CPU, and after the frame's end.")
        .def_property_readonly(
            "parameters", &frame_object::parameters,
            "The parameters of the frame, by name, as `carousel set` has set them for this frame.")
        .def_property_readonly("tombstone_reason", &frame_object::tombstone_reason,
                               "Not empty in finish() of a tombstone frame: the frame was given up and has "
                               "no planes. Only a stage with wants_tombstones=True receives it.")
        .def_property_readonly("first_state", &frame_object::first_state,
                               "True in a stage with state if there is no state before this frame, so that "
                               "its planes are zeros.")
        .def_property_readonly(
            "local", &frame_object::local,
            "An object that belongs to this frame only, with attributes of any name, passed from process() "
            "to finish(). Attributes of self may belong to another frame by then.")
        .def_property_readonly(
            "inputs",
            [](const frame_object& f) {
                py::list all;
                for (const payload_object& input : f.inputs()) all.append(dict_of(input));
                return all;
            },
            "A dict of planes for each input, in the file's order.")
        .def_property_readonly(
            "output",
            [](const frame_object& f) { return f.outputs().empty() ? py::dict() : dict_of(f.outputs()[0]); },
            "The planes of the output by name; with several outputs, those of the first.")
        .def_property_readonly(
            "outputs",
            [](const frame_object& f) {
                py::dict all;
                for (const payload_object& output : f.outputs()) all[py::str(output.name)] = dict_of(output);
                return all;
            },
            "A dict of planes for each output, by its name; \"\" is an output without a name.")
        .def(
            "__getitem__",
            [](const frame_object& f, const py::object& name) {
                return f.plane(checked_cast<std::string>(name, "a plane's name", text_value));
            },
            py::arg("name"),
            "The plane of that name of an input, or \"out_NAME\" of an output. Raises KeyError with the "
            "names "
            "that there are, and FrameEnded after the frame's end.")
        .def("sampled", &frame_object::sampled, py::arg("name"),
             "The newest frame of a sampled input (sampled = [\"pose\"] in the pipeline file), complete and "
             "valid as long as this frame; None if there is none yet.")
        .def("copy", &frame_object::copy,
             "A copy of the frame in host memory, which stays valid. Waits for the GPU's work on the frame.")
        .def("end_stream", &frame_object::end_stream,
             "In a source with ends=True: the stream ends before this frame.")
        .def(
            "set_hash",
            [](frame_object& f, const py::object& hash, const py::object& name) {
                f.set_hash(checked_cast<u64>(hash, "set_hash(hash)", whole_number),
                           checked_cast<std::string>(name, "set_hash(name)", text_value));
            },
            py::arg("hash"), py::arg("name") = "own",
            "In finish() of a sink, or for the frame of a reader: a hash of the frame's data, from 0 to "
            "2**64 - "
            "1, for the run's report. name: the kind of hash.")
        .def("__repr__", &frame_object::describe);
    bind_metadata(frame);
}

}  // namespace carousel::python
