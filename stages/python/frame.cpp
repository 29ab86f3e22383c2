#include "stages/python/frame.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <nlohmann/json.hpp>

namespace carousel::python {
namespace {

template <typename Payload>
payload_object planes_of(const Payload& p, const std::string& stage, const std::shared_ptr<lease>& held,
                         bool writable) {
    payload_object out;
    out.stage = stage;
    if (!p) return out;
    for (const ring::plane& each : p.format().planes)
        out.planes.push_back(std::make_shared<plane_object>(
            held, const_cast<std::byte*>(p.slot()) + each.offset, each, writable));
    return out;
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
      time_s_(of.time_s()),
      schema_(&schema) {
    lease_->sequence = sequence_;
    if (!of.void_reason().empty()) return;  // it has no picture
    for (std::size_t k = 0; k < inputs.size(); ++k)
        inputs_.push_back(planes_of(of.input(k), inputs[k], lease_, false));
    output_ = planes_of(of.output(), "", lease_, true);
}

frame_object::frame_object(const latest_frame& of, std::shared_ptr<lease> held, const std::string& stage)
    : lease_(std::move(held)), sequence_(of.sequence()), born_ns_(of.born_ns()), time_s_(of.time_s()) {
    lease_->sequence = sequence_;
    inputs_.push_back(planes_of(of.planes(), stage, lease_, false));
}

frame& frame_object::in_stage(const char* what) const {
    if (lease_->ended)
        throw frame_ended(fmt::format("{} of frame {} was asked for after its frame ended", what, sequence_));
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
    auto out = std::shared_ptr<frame_object>(new frame_object);
    out->lease_ = std::make_shared<lease>();
    out->lease_->sequence = out->sequence_ = sequence_;
    out->born_ns_ = born_ns_;
    out->time_s_ = time_s_;
    if (of_ != nullptr && schema_ != nullptr && *schema_)
        out->parameters_ = schema_->values_json(of_->parameter_bytes()).dump();
    for (const payload_object& input : inputs_) {
        out->inputs_.push_back({input.stage, {}});
        for (const auto& plane : input.planes) out->inputs_.back().planes.push_back(plane->to_host());
    }
    return out;
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
    return held_by_others(output_);
}

void bind_frame(py::module_& m) {
    py::class_<frame_object, std::shared_ptr<frame_object>>(
        m, "Frame",
        "A frame: what a stage's function gets, what a port delivers. frame[\"color\"] is a plane.")
        .def_property_readonly("sequence", &frame_object::sequence, "Its number.")
        .def_property_readonly("time_s", &frame_object::time_s, "sequence / fps, or its recording's.")
        .def_property_readonly("born_ns", &frame_object::born_ns,
                               "CLOCK_MONOTONIC when its source began it; 0: not known.")
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
        .def("copy", &frame_object::copy, "The same frame in host memory, which stays.")
        .def("end_stream", &frame_object::end_stream,
             "In a source with ends=True: the stream ends before this frame.")
        .def("set_hash", &frame_object::set_hash, py::arg("hash"), py::arg("name") = "own",
             "In finish() of a sink: a hash of what the frame brought, for the run's report.")
        .def("__repr__", &frame_object::describe);
}

}  // namespace carousel::python
