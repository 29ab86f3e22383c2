#include "stages/python/frame.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <span>

#include <nlohmann/json.hpp>

#include "stages/python/frame_metadata.hpp"

namespace carousel::python {
namespace {

/// Metadata that stay: a copy of the bytes.
std::function<frame_metadata()> kept_metadata(std::span<const std::byte> bytes) {
    return [kept = std::vector<std::byte>(bytes.begin(), bytes.end())] { return frame_metadata(kept); };
}

py::dict dict_of(const payload_object& p) {
    py::dict d;
    for (const auto& plane : p.planes) d[py::str(plane->name())] = plane;
    return d;
}

}  // namespace

std::shared_ptr<plane_object> payload_object::find(std::string_view name) const {
    for (const auto& plane : planes)
        if (plane->name() == name) return plane;
    return nullptr;
}

frame_object::frame_object(frame& of, std::shared_ptr<lease> held, const std::vector<std::string>& inputs,
                           const parameter_schema& schema)
    : of_(&of),
      lease_(std::move(held)),
      sequence_(of.sequence()),
      born_ns_(of.born_ns()),
      capture_ns_(of.capture_ns()),
      metadata_([this] { return of_->metadata(); }),
      time_s_(of.time_s()),
      schema_(&schema) {
    lease_->sequence = sequence_;
    if (!of.void_reason().empty()) return;  // it has no picture
    for (std::size_t k = 0; k < inputs.size(); ++k) add_input(of.input(k), inputs[k]);
    if (const output_payload out = of.output(); out) set_output(out);
}

frame_object::frame_object(const latest_frame& of, std::shared_ptr<lease> held, const std::string& stage)
    : lease_(std::move(held)),
      sequence_(of.sequence()),
      born_ns_(of.born_ns()),
      capture_ns_(of.capture_ns()),
      metadata_(kept_metadata(of.metadata().bytes())),
      time_s_(of.time_s()) {
    lease_->sequence = sequence_;
    add_input(of.planes(), stage);
}

frame_object::frame_object(const side_frame& of, std::shared_ptr<lease> held, const std::string& name)
    : lease_(std::move(held)),
      sequence_(of.sequence()),
      born_ns_(of.born_ns()),
      capture_ns_(of.capture_ns()),
      metadata_(kept_metadata(of.metadata().bytes())),
      time_s_(of.time_s()) {
    add_input(of.payload(), name);
}

std::shared_ptr<frame_object> frame_object::latest(const std::string& name) {
    if (const auto known = sides_.find(name); known != sides_.end()) return known->second;
    const side_frame side = in_stage("latest()").latest(name);
    return sides_[name] = side ? std::make_shared<frame_object>(side, lease_, name) : nullptr;
}

// An input's planes have the shape that this frame uses of them.
void frame_object::add_input(const input_payload& planes, const std::string& stage) {
    inputs_.push_back({stage, {}});
    if (!planes) return;
    for (const ring::plane& each : planes.format().planes)
        inputs_.back().planes.push_back(std::make_shared<plane_object>(
            lease_, const_cast<std::byte*>(planes.slot()) + each.offset, planes.in_use(each.name), false));
}

void frame_object::set_output(const output_payload& planes) {
    for (const ring::plane& each : planes.format().planes) {
        auto plane = std::make_shared<plane_object>(lease_, planes.slot() + each.offset, each, true);
        if (planes.used() != nullptr)
            plane->take_used = [used = planes.used(), format = &planes.format(),
                                name = each.name](const std::vector<u64>& elements) {
                ring::set_used(*used, *format, name, elements);
            };
        output_.planes.push_back(std::move(plane));
    }
}

void frame_object::require_not_ended(const char* what) const {
    if (lease_->ended)
        throw frame_ended(fmt::format("{} of frame {} was asked for after its frame ended", what, sequence_));
}

frame_metadata frame_object::metadata() const {
    require_not_ended("metadata");
    return metadata_ ? metadata_() : frame_metadata();
}

frame& frame_object::in_stage(const char* what) const {
    require_not_ended(what);
    if (of_ == nullptr)
        throw std::runtime_error(
            fmt::format("{} is for the frame of a stage; frame {} is not one", what, sequence_));
    return *of_;
}

py::object frame_object::stream() const {
    if (lease_->stream == nullptr) return py::none();
    return py::int_(reinterpret_cast<std::uintptr_t>(lease_->stream));
}

py::object frame_object::parameters() const {
    std::string text = parameters_;
    if (schema_ != nullptr && *schema_)
        text = schema_->values_json(in_stage("parameters").parameter_bytes()).dump();
    return py::module_::import("json").attr("loads")(text.empty() ? "{}" : text);
}

std::string frame_object::void_reason() const {
    return of_ == nullptr ? "" : std::string(of_->void_reason());
}

std::shared_ptr<plane_object> frame_object::plane(const std::string& name) const {
    std::vector<std::shared_ptr<plane_object>> found;
    for (const payload_object& input : inputs_)
        if (auto plane = input.find(name)) found.push_back(std::move(plane));
    if (found.empty() && name == "out" && output_.planes.size() == 1) return output_.planes.front();
    if (found.empty() && name.starts_with("out_"))
        if (auto plane = output_.find(name.substr(4))) return plane;
    if (found.size() == 1) return found.front();
    std::vector<std::string> names;
    for (const payload_object& input : inputs_)
        for (const auto& plane : input.planes) names.push_back(plane->name());
    throw py::key_error(
        found.empty() ? fmt::format("frame {} has no plane \"{}\"; there are {}", sequence_, name,
                                    names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))
                      : fmt::format("{} inputs have a plane \"{}\": frame.inputs[0][\"{}\"] is the first's",
                                    found.size(), name, name));
}

std::shared_ptr<frame_object> frame_object::copy() const {
    auto out = std::shared_ptr<frame_object>(new frame_object(std::make_shared<lease>()));
    out->lease_->sequence = out->sequence_ = sequence_;
    out->born_ns_ = born_ns_;
    out->capture_ns_ = capture_ns_;
    out->metadata_ = kept_metadata(metadata().bytes());
    out->time_s_ = time_s_;
    if (of_ != nullptr && schema_ != nullptr && *schema_)
        out->parameters_ = schema_->values_json(of_->parameter_bytes()).dump();
    for (const payload_object& input : inputs_) {
        out->inputs_.push_back({input.stage, {}});
        for (const auto& plane : input.planes) out->inputs_.back().planes.push_back(plane->to_host());
    }
    return out;
}

void frame_object::set_capture_ns(u64 ns) {
    in_stage("capture_ns").set_capture_ns(ns);
    capture_ns_ = ns;
}
void frame_object::end_stream() { in_stage("end_stream()").end_stream(); }
void frame_object::set_hash(u64 hash, const std::string& name) {
    in_stage("set_hash()").set_hash(hash, name);
}

std::string frame_object::describe() const {
    std::string planes;
    for (const payload_object& input : inputs_)
        for (const auto& plane : input.planes)
            planes += fmt::format("{}{}: {}{}", planes.empty() ? "" : ", ", plane->name(), plane->type(),
                                  py::str(plane->shape()).cast<std::string>());
    return fmt::format("<carousel.Frame {} {{{}}}{}>", sequence_, planes, lease_->ended ? ", ended" : "");
}

// What holds a plane that was lent by __cuda_array_interface__ may be an array: it has no deleter of ours.
std::string frame_object::outlived() const {
    if (lease_->arrays > 0) return lease_->last_plane;
    const auto held_by_others = [](const payload_object& p) -> std::string {
        for (const auto& plane : p.planes)
            if (plane->was_lent() && plane.use_count() > 1) return plane->name();
        return "";
    };
    for (const payload_object& input : inputs_)
        if (std::string name = held_by_others(input); !name.empty()) return name;
    for (const auto& [side, f] : sides_)
        if (std::string name = f ? f->outlived() : ""; !name.empty()) return name;
    return held_by_others(output_);
}

void bind_frame(py::module_& m) {
    py::class_<frame_object, std::shared_ptr<frame_object>> frame(
        m, "Frame",
        "A frame: what a stage's function gets, what a port delivers. frame[\"color\"] is a plane.");
    frame.def_property_readonly("sequence", &frame_object::sequence, "Its number.")
        .def_property_readonly("time_s", &frame_object::time_s, "sequence / fps, or its recording's.")
        .def_property_readonly("born_ns", &frame_object::born_ns,
                               "CLOCK_MONOTONIC when its source began it; 0: not known.")
        .def_property(
            "capture_ns", &frame_object::capture_ns, &frame_object::set_capture_ns,
            "CLOCK_MONOTONIC when what it shows happened; 0: its source has not said. A source, and a "
            "writer, sets it.")
        .def_property_readonly(
            "metadata",
            [](const py::object& f) { return py::module_::import("carousel._metadata").attr("Metadata")(f); },
            "Small named values, as a dict: bool, int, float, str, bytes. They travel with the frame.")
        .def_property_readonly("stream", &frame_object::stream,
                               "The cudaStream_t as a number; None on the CPU.")
        .def_property_readonly("parameters", &frame_object::parameters,
                               "Those that it was stamped with, by name.")
        .def_property_readonly("void_reason", &frame_object::void_reason,
                               "In finish(): not empty when the frame was given up and has no planes.")
        .def_property_readonly(
            "inputs",
            [](const frame_object& f) {
                py::list all;
                for (const payload_object& input : f.inputs()) all.append(dict_of(input));
                return all;
            },
            "A dict of planes for each input, in the file's order.")
        .def_property_readonly(
            "output", [](const frame_object& f) { return dict_of(f.output()); },
            "The output's planes by name.")
        .def("__getitem__", &frame_object::plane, py::arg("name"))
        .def("latest", &frame_object::latest, py::arg("name"),
             "The newest frame of a side input (latest = [\"pose\"] in the pipeline file), whole and at hand "
             "for as "
             "long as this frame; None while there was none.")
        .def("copy", &frame_object::copy, "The same frame in host memory, which stays.")
        .def("end_stream", &frame_object::end_stream,
             "In a source with ends=True: the stream ends before this frame.")
        .def("set_hash", &frame_object::set_hash, py::arg("hash"), py::arg("name") = "own",
             "In finish() of a sink: a hash of what the frame brought, for the run's report.")
        .def("__repr__", &frame_object::describe);
    bind_metadata(frame);
}

}  // namespace carousel::python
