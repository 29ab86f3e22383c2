#include "spec/pipeline_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/user_input.hpp"
#include "ring/words.hpp"
#include "run/directory.hpp"
#include "shm/control_block.hpp"
#include "shm/runtime_folder.hpp"
#include "spec/hosts.hpp"
#include "spec/key_table.hpp"
#include "spec/programs.hpp"
#include "spec/section_reader.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr u32 max_device = 63;
constexpr const char* device_values = "\"auto\", \"cpu\" or \"cuda:N\"";
constexpr u32 framework_first_frame_ms = 30'000;

// The ranges of the numeric keys. The supervisor's ticks cannot resolve times below 10 ms; one frame per
// 10,000 s is the slowest pace at which the time of the next frame fits the clock's word.
constexpr f64 hour_ms = 3'600'000;
constexpr number_range any_ms{0, hour_ms, "ms"}, timeout_ms{10, hour_ms, "ms", "none"};
constexpr number_range lease_ms{1, hour_ms, "ms"}, ring_lease_ms{1, hour_ms, "ms", "", "\"auto\""};
constexpr number_range grace_s{0, hour_ms / 1000, "s", "", "", false};
constexpr number_range gpu_errors{1, 1000, "GPU errors"};
constexpr number_range error_window_s{0.1, hour_ms / 1000, "s", "", "", false};
constexpr number_range space_mib{1, 1U << 20U, "MiB"};
constexpr number_range pace{0.0001, 100'000, "frames/s", "as fast as possible", "", false};
constexpr number_range side_pixels{1, max_extent, "pixels"};
constexpr number_range number_of_frames{1, static_cast<f64>(max_frames), "frames", "no limit"};
constexpr number_range checkpoints{1, 500'000, "frames", "none"};
constexpr number_range dead_letter_limit{0, static_cast<f64>(max_frames), "frames", "", "true or false"};
constexpr number_range lanes{1, max_in_flight, "frames", "", "\"auto\""};
constexpr number_range turn_length{1, max_in_flight, "frames", "", "\"auto\" or \"off\""};
constexpr number_range window_frames{1, shm::max_window, "frames", "", "\"auto\""};
constexpr number_range instance_count{1, max_instances, "processes"};
constexpr number_range attempts{1, ring::max_failures, "deaths"};
constexpr number_range distance{1, 1'000'000, "frames"};

bool is_stage_name(const std::string& name) {
    return !name.empty() && name.size() <= max_name &&
           std::all_of(name.begin(), name.end(),
                       [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

bool is_device(const std::string& text) { return text == "auto" || text == "cpu" || gpu_number(text); }

std::string read_device(section_reader& r, const std::string& fallback) {
    const std::string expected = "\"auto\", \"cpu\" or \"cuda:N\" with the number of a GPU";
    std::string device = r.text("device", fallback, expected);
    if (is_device(device)) return device;
    section_reader::refuse_value("device", *r.take("device"),
                                 expected + did_you_mean_clause(device, {"auto", "cpu", "cuda:0"}));
}

/// Reads one device, or a list of GPUs that is assigned to the stage's instances round robin.
void read_stage_device(section_reader& r, stage_spec& s) {
    const document_entry* e = r.take("device");
    if (e == nullptr || !e->value.is_array()) {
        s.device = read_device(r, s.device);
        return;
    }
    const std::string expected = "a list of GPUs, e.g. [\"cuda:0\", \"cuda:1\"]";
    s.devices = r.texts("device", expected);
    if (s.devices.empty()) section_reader::refuse_value("device", *e, expected);
    for (const std::string& device : s.devices) {
        if (device == "cpu" || device == "auto")
            section_reader::refuse_value("device", *e,
                                         expected +
                                             ": the instances of one stage must all run on named GPUs, or "
                                             "all on the CPU (device = \"cpu\")");
        if (!is_device(device))
            section_reader::refuse_value("device", *e,
                                         expected + did_you_mean_clause(device, {"cuda:0", "cuda:1"}));
    }
    s.device = s.devices.front();
}

/// Called after `instances` is read, because each device of a list needs an instance.
void check_devices(const stage_spec& s, const document_section& section) {
    if (s.devices.size() <= s.instances) return;
    section_reader::refuse_value(
        "device", section.keys.at("device"),
        fmt::format("at most one device per instance (the stage has {}): set instances = {}", s.instances,
                    s.devices.size()));
}

/// A framework such as PyTorch initialises at its first use, so ports and stages in Python get additional
/// time for the first frame. Importing a framework takes seconds, so stages in Python get a standby, too.
void default_for_frameworks(stage_spec& s, const document_section& section) {
    const bool may_stand_by = is_python(s.run) && s.restart == restart_policy::always && s.prefix.empty() &&
                              s.group == group_kind::blocking;
    if (may_stand_by && section.keys.count("standby") == 0) s.standby = true;
    if (section.keys.count("first_frame_timeout_ms") == 0)
        s.first_frame_timeout_ms = framework_first_frame_ms;
}

void read_size(section_reader& r, pipeline_spec& p) {
    const document_entry* e = r.take("size");
    if (e == nullptr) return;
    const std::string expected = fmt::format("[width, height], each from 1 to {}", max_extent);
    if (!e->value.is_array() || e->value.size() != 2) section_reader::refuse_value("size", *e, expected);
    u32* const sides[] = {&p.width, &p.height};
    for (std::size_t k = 0; k < 2; ++k) {
        const nlohmann::json& side = e->value[k];
        if (!side.is_number_integer() || !side_pixels.contains(side.get<f64>()))
            section_reader::refuse_value("size", *e, expected);
        *sides[k] = side.get<u32>();
    }
}

std::vector<std::string> read_prefix(section_reader& r) {
    const document_entry* e = r.take("prefix");
    if (e == nullptr) return {};
    if (e->value.is_string()) {
        std::string missing;
        std::vector<std::string> words = shell_words(e->value.get<std::string>(), missing);
        if (!missing.empty()) section_reader::refuse_value("prefix", *e, missing);
        return words;
    }
    return r.texts("prefix", "a command such as \"gdb --args\", or a list of its words");
}

/// true: any number of frames may be abandoned; false: none.
u64 read_allowed(section_reader& r) {
    const document_entry* e = r.take("allow_dead_letters");
    if (e == nullptr) return 0;
    if (e->value.is_boolean()) return e->value.get<bool>() ? ~u64{0} : 0;
    if (!e->value.is_number_integer() || !dead_letter_limit.contains(e->value.get<f64>()))
        section_reader::refuse_value(
            "allow_dead_letters", *e,
            fmt::format("true, false, or the number of frames that may be given up, from 0 to {}",
                        max_frames));
    return e->value.get<u64>();
}

std::string read_stage_name(section_reader& r) {
    const document_entry* e = r.take("name");
    if (e == nullptr)
        refuse(r.section().at, r.section().title + " has no name; expected e.g. name = \"geometry\"");
    const std::string expected = fmt::format("a name of 1 to {} letters, digits, - and _", max_name);
    std::string name = r.text("name", "", expected);
    if (!is_stage_name(name)) section_reader::refuse_value("name", *e, expected);
    if (name == "pipeline" || name == "parameters" || name == "link" || name == "hosts")
        section_reader::refuse_value("name", *e,
                                     "another name, because this is the name of a section of the file");
    return name;
}

std::string read_python(section_reader& r) {
    const document_entry* e = r.take("python");
    if (e == nullptr) return "";
    const std::string expected = "the folder of a virtual environment, or an interpreter";
    std::string python = r.text("python", "", expected);
    if (python.empty() || python.find('\0') != std::string::npos)
        section_reader::refuse_value("python", *e, expected);
    return python;
}

std::string read_run(section_reader& r) {
    const document_entry* e = r.take("run");
    if (e == nullptr)
        refuse(r.section().at,
               r.section().title + " has no program; expected e.g. run = \"carousel-geometry\", or a path");
    std::string run = r.text("run", "", "the name or path of a program");
    if (run.empty() || run.find('\0') != std::string::npos)
        section_reader::refuse_value("run", *e, "the name or path of a program");
    return run;
}

void read_pipeline_name(section_reader& r, pipeline_spec& p) {
    p.name = r.text("name", p.name);
    if (shm::is_folder_name(p.name)) return;
    const std::string expected = "a name of 1 to 40 letters, digits, -, _ and inner dots";
    if (const document_entry* e = r.take("name"); e != nullptr)
        section_reader::refuse_value("name", *e, expected);
    refuse(r.section().at,
           fmt::format("the file's name is not a valid pipeline name (\"{}\"); expected [pipeline] name = {}",
                       p.name, expected));
}

u32 read_u32(section_reader& r, const char* key, u32 fallback, const number_range& range) {
    return static_cast<u32>(r.integer(key, fallback, range));
}

/// Empty: the value is "auto", or the key is absent.
std::optional<u32> read_u32_or_auto(section_reader& r, const char* key, const number_range& range) {
    const document_entry* e = r.take(key);
    if (e == nullptr || e->value == "auto") return std::nullopt;
    return read_u32(r, key, 0, range);
}

void read_standby(section_reader& r, stage_spec& s) {
    const document_entry* e = r.take("standby");
    if (e == nullptr) return;
    s.standby_auto = e->value == "auto";
    if (!s.standby_auto && !e->value.is_boolean())
        section_reader::refuse_value("standby", *e, "true, false or \"auto\"");
    s.standby = e->value == true;
}

/// Empty: "auto"; 0: "off".
std::optional<u32> read_turns(section_reader& r) {
    const document_entry* e = r.take("turns");
    if (e == nullptr || e->value == "auto") return std::nullopt;
    if (e->value == "off" || e->value == false) return 0;
    if (!e->value.is_number_integer() || !turn_length.contains(e->value.get<f64>()))
        section_reader::refuse_value(
            "turns", *e,
            fmt::format("\"auto\", \"off\", or the number of frames per turn, from 1 to {}", max_in_flight));
    return e->value.get<u32>();
}

bool read_graphs(section_reader& r) {
    const document_entry* e = r.take("graphs");
    if (e == nullptr || e->value == "on" || e->value == true) return true;
    if (e->value == "off" || e->value == false) return false;
    section_reader::refuse_value("graphs", *e, "\"on\" or \"off\"");
}

json number_or_auto(const std::optional<u32>& number) { return number ? json(*number) : json("auto"); }

const key_row<pipeline_spec> pipeline_rows[] = {
    {"name", [](auto& r, auto, auto& p) { read_pipeline_name(r, p); }, [](auto& p) { return json(p.name); },
     "1 to 40 letters, digits, -, _ and inner dots",
     "Name of the pipeline, by which its run and its files are found.", "the name of the file"},
    {"folder", [](auto& r, auto key, auto& p) { p.folder = r.text(key, p.folder); },
     [](auto& p) { return json(p.folder); }, "a path",
     "Folder that relative paths of the file refer to. A relative value refers to the folder of the file.",
     "the folder of the file"},
    {"device", [](auto& r, auto, auto& p) { p.device = read_device(r, p.device); },
     [](auto& p) { return json(p.device); }, device_values,
     "Device of the stages that have no `device` of their own. `auto` is the first GPU, or the CPU if there "
     "is none."},
    {"fallback", [](auto& r, auto key, auto& p) { p.fallback = r.choice(key, p.fallback, fallback_words); },
     [](auto& p) { return json(word_of(fallback_words, p.fallback)); }, words_of<fallback_words>,
     "`cpu`: if the GPU fails, all stages on it continue on the CPU, with the same pictures, until `carousel "
     "device` returns them. Each stage must declare `bit_equal`."},
    {"fallback_after",
     [](auto& r, auto key, auto& p) { p.fallback_after = read_u32(r, key, p.fallback_after, gpu_errors); },
     [](auto& p) { return json(p.fallback_after); }, &gpu_errors,
     "Number of GPU errors within `fallback_window_s` after which stages move to the CPU. A GPU that is "
     "lost, "
     "or that a process cannot open, needs one."},
    {"fallback_window_s",
     [](auto& r, auto key, auto& p) {
         p.fallback_window_s = r.number(key, p.fallback_window_s, error_window_s);
     },
     [](auto& p) { return json(p.fallback_window_s); }, &error_window_s,
     "Time within which the GPU errors of `fallback_after` occur."},
    {"fallback_inexact",
     [](auto& r, auto key, auto& p) { p.fallback_inexact = r.flag(key, p.fallback_inexact); },
     [](auto& p) { return json(p.fallback_inexact); }, "true or false",
     "Whether stages that do not declare `bit_equal` may move to the CPU, too. Their pictures may change; "
     "the "
     "report states it."},
    {"size", [](auto& r, auto, auto& p) { read_size(r, p); },
     [](auto& p) {
         return json{p.width, p.height};
     },
     &side_pixels, "Width and height of the pictures, in pixels, as a list of two numbers."},
    {"frame_timeout_ms",
     [](auto& r, auto key, auto& p) {
         p.frame_timeout_ms = read_u32(r, key, p.frame_timeout_ms, timeout_ms);
     },
     [](auto& p) { return json(p.frame_timeout_ms); }, &timeout_ms,
     "Time that a stage may take for one frame. A process that takes longer is replaced."},
    {"stall_timeout_ms",
     [](auto& r, auto key, auto& p) { p.stall_timeout_ms = read_u32(r, key, p.stall_timeout_ms, any_ms); },
     [](auto& p) { return json(p.stall_timeout_ms); }, &any_ms,
     "If no frame moves for this time and no stage reports a reason, the control block is rebuilt; 0: "
     "never."},
    {"latest_lease_ms",
     [](auto& r, auto key, auto& p) { p.latest_lease_ms = read_u32(r, key, p.latest_lease_ms, lease_ms); },
     [](auto& p) { return json(p.latest_lease_ms); }, &lease_ms,
     "Time after which the lease of a viewer, or of another reader of the newest frame, may be revoked. Less "
     "than `stall_timeout_ms`, unless that is 0."},
    {"supervisor_grace_s",
     [](auto& r, auto key, auto& p) { p.supervisor_grace_s = r.number(key, p.supervisor_grace_s, grace_s); },
     [](auto& p) { return json(p.supervisor_grace_s); }, &grace_s,
     "Time for which the stages continue without a supervisor. Within it, `carousel run FILE` takes the run "
     "over."},
    {"space_mib", [](auto& r, auto key, auto& p) { p.space_mib = read_u32(r, key, p.space_mib, space_mib); },
     [](auto& p) { return json(p.space_mib); }, &space_mib,
     "Size of the shared-memory space that the run offers to other programs; allocated when one opens it."},
    {"latency", [](auto& r, auto key, auto& p) { p.latency = r.choice(key, p.latency, latency_words); },
     [](auto& p) { return json(word_of(latency_words, p.latency)); }, words_of<latency_words>,
     "How many frames `auto` keeps in flight: the fewest possible (`low`), the fewest that reach 95 % of the "
     "best rate (`balanced`), or as many as there is room for (`throughput`)."},
    {"turns", [](auto& r, auto, auto& p) { p.turn_frames = read_turns(r); },
     [](auto& p) { return p.turn_frames == 0U ? json("off") : number_or_auto(p.turn_frames); }, &turn_length,
     "Number of frames in one turn on the GPU, if stages with a context each share it; `off`: no turns."},
    {"graphs", [](auto& r, auto, auto& p) { p.graphs = read_graphs(r); },
     [](auto& p) { return json(p.graphs ? "on" : "off"); }, "\"on\" or \"off\"",
     "Whether stages whose work is the same for every frame run it as CUDA graphs."},
    {"fps", [](auto& r, auto key, auto& p) { p.fps = r.number(key, p.fps, pace); },
     [](auto& p) { return json(p.fps); }, &pace,
     "Frames per second: the time base of the frames, and their pace."},
    {"frames", [](auto& r, auto key, auto& p) { p.frames = r.integer(key, p.frames, number_of_frames); },
     [](auto& p) { return json(p.frames); }, &number_of_frames, "The run ends after this number of frames."},
    {"allow_dead_letters", [](auto& r, auto, auto& p) { p.allow_dead_letters = read_allowed(r); },
     [](auto& p) { return p.allow_dead_letters == ~u64{0} ? json(true) : json(p.allow_dead_letters); },
     &dead_letter_limit,
     "Number of frames that may be abandoned without an effect on the exit code; `true`: any number."},
    {"checkpoint_every",
     [](auto& r, auto key, auto& p) { p.checkpoint_every = r.integer(key, p.checkpoint_every, checkpoints); },
     [](auto& p) { return json(p.checkpoint_every); }, &checkpoints,
     "Distance of the checkpoints of the stages' states, from which a run continues if their memory is "
     "lost."},
    {"checkpoint_to", [](auto& r, auto key, auto& p) { p.checkpoint_to = r.text(key, p.checkpoint_to); },
     [](auto& p) { return json(p.checkpoint_to); }, "a path", "Folder of the checkpoints.",
     "NAME.checkpoints next to the file"},
    {"allow_state_loss",
     [](auto& r, auto key, auto& p) { p.allow_state_loss = r.flag(key, p.allow_state_loss); },
     [](auto& p) { return json(p.allow_state_loss); }, "true or false",
     "Whether a stage may begin again with a fresh state without an effect on the exit code."},
    {"record_to", [](auto& r, auto key, auto& p) { p.record_to = r.text(key, p.record_to); },
     [](auto& p) { return json(p.record_to); }, "a path",
     "The recording of the rings that have `record = true`.", "NAME.mcap next to the file"},
    {"record_compression",
     [](auto& r, auto key, auto& p) {
         p.compression = r.text(key, p.compression, "\"lz4\", \"zstd\" or \"none\"");
     },
     [](auto& p) { return json(p.compression); }, "\"lz4\", \"zstd\" or \"none\"",
     "Compression of the recording.", "`\"lz4\"`"},
    {"record_images", [](auto& r, auto key, auto& p) { p.record_images = r.flag(key, p.record_images); },
     [](auto& p) { return json(p.record_images); }, "true or false",
     "Whether the recording has a small JPEG of each picture in addition, for other programs."},
    {"isolation",
     [](auto& r, auto key, auto& p) { p.isolation = r.choice(key, p.isolation, isolation_words); },
     [](auto& p) { return json(word_of(isolation_words, p.isolation)); }, words_of<isolation_words>,
     "`process`: each stage has a GPU context of its own; `mps`: the stages share an MPS domain, which is "
     "faster, but a GPU fault ends all of its processes."},
};

const key_row<stage_spec> stage_rows[] = {
    {"name", [](auto& r, auto, auto& s) { s.name = read_stage_name(r); },
     [](auto& s) { return json(s.name); }, "1 to 47 letters, digits, - and _", "Name of the stage.",
     "(required)"},
    {"run", [](auto& r, auto, auto& s) { s.run = read_run(r); }, [](auto& s) { return json(s.run); },
     "a program's name or path, a Python file (`file.py`, or `file.py:NAME` for one of its stages), or "
     "\"port\"",
     "What runs the stage: a program next to `carousel` or in PATH, or a path relative to the file; `port`: "
     "an external program.",
     "(required)"},
    {"python", [](auto& r, auto, auto& s) { s.python = read_python(r); },
     [](auto& s) { return json(s.python); }, "the folder of a virtual environment, or an interpreter",
     "Interpreter of a stage in Python: a path relative to the file, or a name in PATH.",
     "`CAROUSEL_PYTHON`, otherwise `python3`"},
    {"inputs",
     [](auto& r, auto key, auto& s) {
         s.inputs = r.texts(key, "a list of stages' names, e.g. [\"vertex\"]");
     },
     [](auto& s) { return json(s.inputs); }, "a list of \"STAGE\" or \"STAGE.OUTPUT\"",
     "Stages whose frames it reads, each frame once and in order. Without inputs the stage is a source."},
    {"sampled",
     [](auto& r, auto key, auto& s) {
         s.sampled_inputs =
             r.texts(key, "a list of stages' names whose newest frame it reads, e.g. [\"pose\"]");
     },
     [](auto& s) { return json(s.sampled_inputs); }, "a list of \"STAGE\" or \"STAGE.OUTPUT\", at most 4",
     "Stages whose newest frame it takes when it begins a frame of its own."},
    {"device", [](auto& r, auto, auto& s) { read_stage_device(r, s); },
     [](auto& s) { return s.devices.empty() ? json(s.device) : json(s.devices); }, device_values,
     "Device of the stage; with several `instances` also a list of GPUs, assigned round robin.",
     "the pipeline's"},
    {"fallback", [](auto& r, auto key, auto& s) { s.fallback = r.choice(key, s.fallback, fallback_words); },
     [](auto& s) { return json(word_of(fallback_words, s.fallback)); }, words_of<fallback_words>,
     "`cpu`: after GPU errors of its own processes this stage alone moves to the CPU."},
    {"in_flight", [](auto& r, auto key, auto& s) { s.in_flight = read_u32_or_auto(r, key, lanes); },
     [](auto& s) { return number_or_auto(s.in_flight); }, &lanes,
     "Number of frames that one process of the stage keeps in flight."},
    {"instances",
     [](auto& r, auto key, auto& s) { s.instances = read_u32(r, key, s.instances, instance_count); },
     [](auto& s) { return json(s.instances); }, &instance_count,
     "Number of processes that share the stage's frames."},
    {"every", [](auto& r, auto key, auto& s) { s.every = read_u32(r, key, s.every, distance); },
     [](auto& s) { return json(s.every); }, &distance,
     "The stage takes each N-th frame, beginning with frame 0; the frames in between pass it without a wait. "
     "Only for a stage without outputs."},
    {"standby", [](auto& r, auto, auto& s) { read_standby(r, s); },
     [](auto& s) { return s.standby_auto ? json("auto") : json(s.standby); }, "true, false or \"auto\"",
     "Whether each process has a warm replacement, which takes over when the process dies. `auto`: if the "
     "stage "
     "is on a GPU with memory for the contexts of all standbys.",
     "false; true for a stage in Python"},
    {"restart", [](auto& r, auto key, auto& s) { s.restart = r.choice(key, s.restart, restart_words); },
     [](auto& s) { return json(word_of(restart_words, s.restart)); }, words_of<restart_words>,
     "When a process that has ended is replaced."},
    {"max_attempts",
     [](auto& r, auto key, auto& s) { s.max_attempts = read_u32(r, key, s.max_attempts, attempts); },
     [](auto& s) { return json(s.max_attempts); }, &attempts,
     "After this number of process deaths over one frame, the frame is abandoned and forwarded as a "
     "tombstone."},
    {"frame_timeout_ms",
     [](auto& r, auto key, auto& s) {
         s.frame_timeout_ms = read_u32(r, key, s.frame_timeout_ms, timeout_ms);
     },
     [](auto& s) { return json(s.frame_timeout_ms); }, &timeout_ms, "As in `[pipeline]`, for this stage.",
     "the pipeline's"},
    {"first_frame_timeout_ms",
     [](auto& r, auto key, auto& s) {
         s.first_frame_timeout_ms = read_u32(r, key, s.first_frame_timeout_ms, any_ms);
     },
     [](auto& s) { return json(s.first_frame_timeout_ms); }, &any_ms,
     "The timeout of a process's first frame, during which a framework may be initialised. A value below "
     "`frame_timeout_ms` has no effect.",
     "0; 30000 for a stage in Python and a port"},
    {"optional", [](auto& r, auto key, auto& s) { s.optional = r.flag(key, s.optional); },
     [](auto& s) { return json(s.optional); }, "true or false",
     "Whether the run continues without the stage if it fails for good. Only for a stage that no other stage "
     "needs."},
    {"host", [](auto& r, auto, auto& s) { read_stage_host(r, s); },
     [](auto& s) { return s.hosts.empty() ? json(s.host) : json(s.hosts); },
     "the NAME of a section `[hosts.NAME]`",
     "Host that the stage runs on; with several `instances` also a list, assigned round robin.",
     "the host of `carousel run`"},
    {"group", [](auto& r, auto key, auto& s) { s.group = r.choice(key, s.group, group_words); },
     [](auto& s) { return json(word_of(group_words, s.group)); }, words_of<group_words>,
     "`blocking`: the stage gets every frame; `latest`: the stage gets only the newest frame and never "
     "delays a producer. "
     "Only for a stage without outputs."},
    {"isolation",
     [](auto& r, auto key, auto& s) { s.isolation = r.choice(key, s.isolation, isolation_words); },
     [](auto& s) { return json(word_of(isolation_words, s.isolation)); }, words_of<isolation_words>,
     "As in `[pipeline]`, for this stage. It has no effect on the CPU.", "the pipeline's"},
    {"prefix", [](auto& r, auto, auto& s) { s.prefix = read_prefix(r); },
     [](auto& s) { return json(s.prefix); }, "a command, or a list of its words",
     "A tool that the stage runs under, such as `gdb --args`. The stage has no timeout then."},
};

const key_row<link_spec> link_rows[] = {
    {"window", [](auto& r, auto key, auto& l) { l.window = read_u32_or_auto(r, key, window_frames); },
     [](auto& l) { return number_or_auto(l.window); }, &window_frames,
     "Number of frames that the stage may start, counted from the oldest frame that is not delivered."},
    {"record", [](auto& r, auto key, auto& l) { l.record = r.flag(key, l.record); },
     [](auto& l) { return json(l.record); }, "true or false",
     "Whether the frames of this ring are written to the run's recording."},
    {"latest_lease_ms",
     [](auto& r, auto key, auto& l) { l.latest_lease_ms = read_u32_or_auto(r, key, ring_lease_ms); },
     [](auto& l) { return number_or_auto(l.latest_lease_ms); }, &ring_lease_ms,
     "As in `[pipeline]`, for the readers of this ring; `auto`: the value of `[pipeline]`."},
    {"memory", [](auto& r, auto key, auto& l) { l.memory = r.choice(key, l.memory, link_memory_words); },
     [](auto& l) { return json(word_of(link_memory_words, l.memory)); }, words_of<link_memory_words>,
     "Kind of GPU memory of the ring. With `ipc` the run is rebuilt if the process that owns the memory "
     "dies. A ring that a stage on the CPU writes or reads is in host memory."},
    {"guard", [](auto& r, auto key, auto& l) { l.guard = r.choice(key, l.guard, guard_words); },
     [](auto& l) { return json(word_of(guard_words, l.guard)); }, words_of<guard_words>,
     "What follows each slot, to detect a write beyond it: an unmapped gap, a canary, or nothing."},
};

std::map<std::string, source_position> places_of(const document_section& s) {
    std::map<std::string, source_position> out;
    for (const auto& [key, entry] : s.keys) out[key] = entry.key_at;
    return out;
}

}  // namespace

std::optional<u32> gpu_number(const std::string& device) {
    if (!device.starts_with("cuda:") || device.size() < 6 || device.size() > 7) return std::nullopt;
    const std::string digits = device.substr(5);
    if (!std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
        return std::nullopt;
    const auto number = static_cast<u32>(std::stoi(digits));
    return number <= max_device ? std::optional(number) : std::nullopt;
}

const std::vector<std::string>& stage_keys() {
    static const std::vector<std::string> keys = [] {
        std::vector<std::string> all;
        for (const key_row<stage_spec>& row : stage_rows) all.emplace_back(row.key);
        return all;
    }();
    return keys;
}

void read_pipeline_keys(const document_section& s, pipeline& p) {
    section_reader r(s);
    read_all<pipeline_spec>(pipeline_rows, r, p);
    r.refuse_unknown();
    p.key_at = places_of(s);
}

stage_spec read_stage_keys(const document_section& s, const pipeline& p) {
    section_reader r(s);
    stage_spec out;
    out.at = s.at;
    out.device = p.device;
    out.frame_timeout_ms = p.frame_timeout_ms;
    out.isolation = p.isolation;
    read_all(stage_rows, r, out);
    if (is_python(out.run) || out.is_port()) default_for_frameworks(out, s);
    check_devices(out, s);
    out.key_at = places_of(s);
    for (const auto& [key, entry] : s.keys)
        if (r.known().count(key) == 0) out.settings[key] = entry.value;
    return out;
}

link_spec read_link_keys(const document_section& s) {
    section_reader r(s);
    link_spec out;
    out.at = s.at;
    read_all(link_rows, r, out);
    r.refuse_unknown();
    out.key_at = places_of(s);
    return out;
}

const std::vector<key_description>& all_keys() {
    static const std::vector<key_description> keys = [] {
        std::vector<key_description> all;
        describe_all(pipeline_rows, "[pipeline]", all);
        describe_all(stage_rows, "[[stage]]", all);
        describe_all(link_rows, "[link.STAGE]", all);
        describe_host_keys(all);
        return all;
    }();
    return keys;
}

std::string key_reference() {
    std::string text, section;
    for (const key_description& k : all_keys()) {
        if (k.section != section) {
            section = k.section;
            text += fmt::format(
                "\n## `{}`\n\n| key | values | unit | default | meaning |\n|---|---|---|---|---|\n", section);
        }
        text += fmt::format("| `{}` | {} | {} | {} | {} |\n", k.key, k.values,
                            k.range != nullptr ? k.range->unit : "", k.default_value, k.meaning);
    }
    return text;
}

json values_of(const pipeline_spec& p) { return values_of(pipeline_rows, p); }
json values_of(const stage_spec& s) { return values_of(stage_rows, s); }
json values_of(const link_spec& l) { return values_of(link_rows, l); }

}  // namespace carousel::supervisor
