#include "stages/python/python_stage.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "core/log.hpp"
#include "core/runs_on.hpp"
#include "dead_letters/dead_letter.hpp"
#include "stages/python/gil.hpp"
#include "stages/python/streams.hpp"

namespace carousel::python {
namespace {

/// The argument of the adapter's configure(): the settings as typed values, and all other members as plain
/// values.
struct configuration_object {
    const configuration* with;
    py::dict input_formats = {}, setting_values = {};  ///< both dicts are in the form that the adapter reads
    [[nodiscard]] const settings& own() const { return *with->settings; }
};

/// Calls `f`. A wrong key or value is raised in Python as carousel.SettingsError(key, message), so that the
/// place of the key in the file can be reported.
template <typename F>
auto as_settings_error(F&& f) {
    try {
        return f();
    } catch (const settings_error& e) {
        const py::object type = py::module_::import("carousel._errors").attr("SettingsError");
        PyErr_SetObject(type.ptr(), py::make_tuple(e.key(), e.what()).ptr());
        throw py::error_already_set();
    }
}

description description_from(const py::dict& d) {
    description out;
    for (const py::handle each : d["outputs"]) {
        const auto [name, format] = each.cast<std::pair<std::string, std::string>>();
        out.outputs.emplace_back(name, frame_format::from_json(format));
    }
    if (const auto state = d["state"].cast<std::string>(); !state.empty())
        out.state = frame_format::from_json(state).planes;
    out.device = runs_on_named(d["device"].cast<std::string>(), runs_on::any);
    out.ends = d["ends"].cast<bool>();
    out.accepts_sampled_inputs = d["accepts_sampled_inputs"].cast<bool>();
    out.writable_inputs = d["writable_inputs"].cast<bool>();
    out.wants_tombstones = d["wants_tombstones"].cast<bool>();
    out.bit_equal = d["bit_equal"].cast<bool>();
    for (const py::handle each : d["reads"]) {
        const auto [plane, input] = each.cast<std::pair<std::string, std::size_t>>();
        out.reads.push_back({plane, {}, input});
    }
    out.maps_peer_rings = true;  // the function may use streams that the runner does not know
    return out;
}

/// Returns the text of a Python exception: one sentence, and the traceback. If the exception has no text, its
/// type is used.
std::pair<std::string, std::string> words_of_exception(py::error_already_set& e) {
    const std::string kind = reinterpret_cast<PyTypeObject*>(e.type().ptr())->tp_name;
    try {
        const py::object exception_text = py::module_::import("carousel._errors").attr("words_of");
        const py::tuple words =
            exception_text(e.type(), e.value(), e.trace() ? e.trace() : py::object(py::none()));
        return {words[0].cast<std::string>(), words[1].cast<std::string>()};
    } catch (const std::exception&) {
        return {kind + ": its text is not available", kind};
    }
}

}  // namespace

python_stage::python_stage(py::object adapter)
    : adapter_(adapter.release()), finishes_(adapter_.attr("finishes").cast<bool>()) {}

python_stage::~python_stage() {
    const py::gil_scoped_acquire gil;
    lanes_.clear();
    locals_.clear();
}

description python_stage::configure(const configuration& with) {
    const py::gil_scoped_acquire gil;
    stage_ = with.stage;
    inputs_.clear();
    for (const input_description& i : with.inputs) inputs_.push_back(i.stage);
    try {
        const py::dict d = adapter_.attr("configure")(configuration_object{&with});
        picks_ = d["picks"].cast<decltype(picks_)>();
        description described = description_from(d);
        writable_inputs_ = described.writable_inputs;
        has_state_ = !described.state.empty();
        outputs_.clear();
        for (const output_description& o : described.outputs) outputs_.push_back(o.name);
        return described;
    } catch (py::error_already_set& e) {
        const py::module_ errors = py::module_::import("carousel._errors");
        const auto [sentence, traceback] = words_of_exception(e);
        if (e.matches(errors.attr("SettingsError")))
            throw settings_error(errors.attr("key_of")(e.value()).cast<std::string>(), sentence);
        if (!e.matches(errors.attr("ConfigError"))) log::error("{}", traceback);
        throw config_error(sentence);
    }
}

void python_stage::prepare(environment& env) {
    const py::gil_scoped_acquire gil;
    env_ = &env;
    locals_.resize(env.in_flight());
    if (env.context().kind() == device_kind::cuda) gpu_ = current_gpu();
    try {
        frameworks_ = py::object(py::module_::import("carousel._frameworks").attr("enter")).release();
        if (gpu_ >= 0) frameworks_(reinterpret_cast<std::uintptr_t>(env.queue().native_stream()), gpu_);
        const py::tuple functions = adapter_.attr("prepare")(
            py::dict(py::arg("device") = gpu_ < 0 ? "cpu" : fmt::format("cuda:{}", gpu_),
                     py::arg("instance") = env.instance(), py::arg("in_flight") = env.in_flight(),
                     py::arg("runtime_directory") = env.runtime_directory()),
            py::cpp_function([&env] { return env.output_directory(); }));
        process_ = py::object(functions[0]).release();
        finish_ = py::object(functions[1]).release();
    } catch (py::error_already_set& e) {
        const auto [sentence, traceback] = words_of_exception(e);
        log::error("{}", traceback);
        throw error(exit_code::stage_exception, "prepare: " + sentence);
    }
}

py::tuple python_stage::arguments(const std::shared_ptr<frame_object>& f) const {
    py::tuple words(picks_.size());
    for (std::size_t k = 0; k < picks_.size(); ++k) {
        const auto& [what, index, plane] = picks_[k];
        if (what == "frame")
            words[k] = f;
        else if (what == "previous" || what == "next")
            words[k] = (what == "next" ? f->next_state() : f->previous_state()).planes.at(plane);
        else
            words[k] = (what == "output" ? f->outputs() : f->inputs()).at(index).planes.at(plane);
    }
    return words;
}

void python_stage::process(frame& f) { call(f, process_, true); }
void python_stage::finish(frame& f) { call(f, finish_, false); }

void python_stage::call(frame& f, py::handle function, bool enqueues) {
    const char* const what = enqueues ? "process()" : "finish()";
    const py::gil_scoped_acquire gil;
    auto frame_lease = std::make_shared<lease>();
    frame_lease->frame_number = f.frame_number();
    frame_lease->gpu = gpu_;
    frame_lease->stream = gpu_ >= 0 ? f.queue().native_stream() : nullptr;
    const auto seen = std::make_shared<frame_object>(f, frame_lease, inputs_, outputs_, env_->parameters(),
                                                     writable_inputs_);
    if (enqueues && has_state_) {
        // The function runs at once, or uses streams that are not ordered after the frame's: the work on the
        // frame before, which writes the state that this frame reads, must be complete. On a CPU that is the
        // copy of a tombstone's state.
        {
            const py::gil_scoped_release released;
            f.queue().drain();
        }
        seen->add_state(f.state());
    }
    py::object& local = locals_.at(f.lane());
    if (enqueues || !f.tombstone_reason().empty())
        local = py::object();  // for a tombstone, process() was
                               // not called
    seen->store_local_in(&local);
    try {
        if (gpu_ >= 0) frameworks_(reinterpret_cast<std::uintptr_t>(frame_lease->stream), gpu_);
        const py::tuple words = enqueues ? arguments(seen) : py::make_tuple(seen);
        const auto answer =
            py::reinterpret_steal<py::object>(PyObject_CallObject(function.ptr(), words.ptr()));
        if (!answer) throw py::error_already_set();
        if (!answer.is_none())
            throw error(
                exit_code::stage_exception,
                fmt::format(
                    "{} returned a value of type {}: a stage must write to its output and return nothing",
                    what, py::type::of(answer).attr("__name__").cast<std::string>()));
    } catch (py::error_already_set& e) {
        seen->end();
        fail(f, e);
    }
    if (enqueues && gpu_ >= 0) join_streams(*frame_lease);
    close(*seen, what);
    if (lanes_.size() <= f.lane()) lanes_.resize(f.lane() + 1);
    if (enqueues) lanes_[f.lane()] = std::move(frame_lease);
}

// Called after the user's function has returned, and before the runner's last check and the state SUBMITTED.
// So a reader that finds the frame complete also finds the results of all work that the function has
// enqueued, on any stream.
void python_stage::join_streams(const lease& frame_lease) {
    if (join_or_wait(frame_lease.gpu, frame_lease.stream) || warned_) return;
    warned_ = true;
    log::warning("{}", slower_streams);
}

void python_stage::close(frame_object& f, const char* what) {
    std::string plane = f.outlived();
    if (!plane.empty()) {
        py::module_::import("gc").attr("collect")();  // the object may exist only because a reference cycle
                                                      // contains it
        plane = f.outlived();
    }
    f.end();
    if (!plane.empty())
        throw error(exit_code::stage_exception,
                    fmt::format("an array of plane \"{}\" of frame {} outlives {}: its memory is reused for "
                                "another frame; keep a copy (array.copy(), tensor.clone(), frame.copy())",
                                plane, f.frame_number(), what));
}

void python_stage::fail(frame& f, py::error_already_set& e) const {
    const auto [sentence, traceback] = words_of_exception(e);
    log::error("{}", traceback);
    try {
        run::keep_traceback(env_->runtime_directory(), stage_, f.ring_sequence(), traceback);
    } catch (const error& not_kept) {
        log::warning("{}", not_kept.what());
    }
    throw error(exit_code::stage_exception, sentence);
}

int run_stage(const std::vector<std::string>& words, py::object adapter) {
    static py::handle stage_of_process;  // a static variable, because stage_main takes a plain function,
                                         // which can't capture anything
    stage_of_process = adapter.release();
    std::vector<char*> argv;
    for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    const gil_released others;
    return stage_main(static_cast<int>(words.size()), argv.data(), []() -> std::unique_ptr<stage> {
        const py::gil_scoped_acquire gil;
        return std::make_unique<python_stage>(py::reinterpret_borrow<py::object>(stage_of_process));
    });
}

void bind_stage(py::module_& m) {
    using config = configuration_object;
    py::class_<config>(
        m, "Configuration",
        "The argument of output=... functions: the pipeline's picture size, the inputs, the settings.")
        .def_property_readonly(
            "stage", [](const config& c) { return c.with->stage; }, "The stage's name.")
        .def_property_readonly(
            "width", [](const config& c) { return c.with->width; },
            "The width of the pipeline's pictures, in pixels.")
        .def_property_readonly(
            "height", [](const config& c) { return c.with->height; },
            "The height of the pipeline's pictures, in pixels.")
        .def_property_readonly(
            "fps", [](const config& c) { return c.with->fps; },
            "The pipeline's frames per second; 0: as fast as possible.")
        .def_property_readonly(
            "device", [](const config& c) { return c.with->device; },
            "As in the file: \"auto\", \"cpu\", \"cuda:0\".")
        .def_property_readonly(
            "folder", [](const config& c) { return c.with->folder; },
            "Absolute path of the folder to which relative paths in the pipeline file refer.")
        .def_property_readonly(
            "inputs", [](const config& c) { return c.input_formats; },
            "A dict of planes for each input, by its name in the file, in the file's order: "
            "config.inputs[\"camera\"][\"color\"].shape, and .dtype.")
        .def_property_readonly(
            "settings", [](const config& c) { return c.setting_values; },
            "The stage's settings, as its function receives them: config.settings[\"strength\"].")
        .def("_set_values",
             [](config& c, py::dict inputs, py::dict settings) {
                 c.input_formats = std::move(inputs);
                 c.setting_values = std::move(settings);
             })
        .def_property_readonly("_inputs",
                               [](const config& c) {
                                   py::list all;
                                   for (const input_description& i : c.with->inputs)
                                       all.append(py::make_tuple(i.stage, i.format.to_json()));
                                   return all;
                               })
        .def("_has", [](const config& c, const std::string& key) { return c.own().has(key); })
        .def("_integer",
             [](const config& c, const std::string& key, i64 fallback, i64 low, i64 high) {
                 return as_settings_error([&] { return c.own().integer(key, fallback, low, high); });
             })
        .def("_number",
             [](const config& c, const std::string& key, f64 fallback, f64 low, f64 high) {
                 return as_settings_error([&] { return c.own().number(key, fallback, low, high); });
             })
        .def("_flag",
             [](const config& c, const std::string& key, bool fallback) {
                 return as_settings_error([&] { return c.own().flag(key, fallback); });
             })
        .def("_text",
             [](const config& c, const std::string& key, const std::string& fallback) {
                 return as_settings_error([&] { return c.own().text(key, fallback); });
             })
        .def("_choice", [](const config& c, const std::string& key, const std::string& fallback,
                           const std::vector<std::string>& choices) {
            return as_settings_error([&] { return c.own().choice(key, fallback, choices); });
        });
    m.def("_run_stage", &run_stage, py::arg("words"), py::arg("adapter"));
    m.def(
        "_lay_out",
        [](const std::string& format) {
            frame_format f = frame_format::from_json(format);
            (void)f.lay_out();
            return f.to_json();
        },
        "Checks a frame's format and places its planes.");
    m.def("_describe", [](const std::string& format) { return frame_format::from_json(format).describe(); });
    m.def("_image", [](u32 width, u32 height) { return image_format(width, height).to_json(); });
}

}  // namespace carousel::python
