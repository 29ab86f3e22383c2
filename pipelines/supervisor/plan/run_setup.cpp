#include "supervisor/plan/run_setup.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "os/console.hpp"
#include "run/checkpoint.hpp"
#include "shm/control_block.hpp"
#include "spec/fallback_check.hpp"
#include "spec/pipeline_file.hpp"
#include "spec/pipeline_keys.hpp"
#include "spec/programs.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/guard_plan.hpp"
#include "supervisor/plan/memory_plan.hpp"
#include "supervisor/plan/run_options.hpp"
#include "supervisor/plan/standby_plan.hpp"

namespace carousel::supervisor {
namespace {

void require_reach_of(const run_setup& s, const memory_item& m, u32 stage, const machine_offer& machine) {
    const stage_setup& st = s.stages[stage];
    for (u32 k = 0; m.choice.kind == device::memory_kind::vmm && k < st.spec.instances; ++k) {
        const device::device_id& own = st.device_of(k);
        const auto gpu = std::find_if(machine.gpus.begin(), machine.gpus.end(),
                                      [&](const gpu_offer& g) { return g.id.uuid == own.uuid; });
        if (gpu == machine.gpus.end() || !gpu->peers || own.uuid == m.choice.device.uuid) continue;
        const std::vector<int>& peers = *gpu->peers;
        if (std::find(peers.begin(), peers.end(), m.choice.device.ordinal) != peers.end()) continue;
        throw device_error(
            fmt::format("{}: stage {}: {} is on cuda:{}, and {} can't access that memory (no NVLink, or PCIe "
                        "on different bridges), neither by a mapping nor by a copy: place both on one GPU, "
                        "or one of the stages on the CPU (the ring is then in host memory); `carousel "
                        "doctor` lists GPUs with peer access",
                        st.spec.position_of("device").text(), st.spec.name, m.name, m.choice.device.ordinal,
                        st.device_name_of(k)));
    }
}

namespace fs = std::filesystem;
constexpr const char* default_pattern = "frame_%05d.png";

void make_writable(const fs::path& folder, const char* what) {
    std::error_code failed;
    fs::create_directories(folder, failed);
    const int why = failed ? failed.value() : (::access(folder.c_str(), W_OK | X_OK) != 0 ? errno : 0);
    if (why != 0)
        throw output_error(fmt::format(
            "{} can't be written to {}: {}; choose another place with --out PATTERN, or none with --out ''",
            what, folder.string(), errno_text(why)));
}

bool writes_pictures(const stage_setup& s) {
    return s.is_sink() && fs::path(s.program).filename() == "carousel-display";
}

/// True if the stage keeps each frame until another host's sinks have it. These are as many frames as the
/// rings there hold, or as many as a checkpoint there needs, which this run does not know.
bool sends_durably(const stage_spec& s) {
    return !s.inputs.empty() && s.settings.is_object() && s.settings.value("release", "") == "durable";
}

/// A stage's own standard output is its log, so "pipe:1" of an encoder means the standard output of this
/// process.
void name_own_output(run_setup& s) {
    for (stage_setup& st : s.stages) {
        if (fs::path(st.program).filename() != "carousel-encode" || !st.spec.settings.is_object()) continue;
        for (const char* key : {"url", "out"}) {
            if (st.spec.settings.value(key, nlohmann::json()) != "pipe:1") continue;
            st.spec.settings[key] = fmt::format("/proc/{}/fd/1", ::getpid());
            if (!st.spec.settings.contains("format")) st.spec.settings["format"] = "mpegts";
        }
    }
}

stage_setup stage_from(const pipeline& p, const stage_spec& spec, const stage_description& d,
                       const machine_offer& machine, const test_hooks& hooks, bool on_cpu) {
    stage_setup s;
    s.spec = spec;
    const bool only_states = d.is_sink() && d.outputs() > 0;
    if (const auto link = p.links.find(only_states ? spec.name + "." + d.output : spec.name);
        link != p.links.end())
        s.link = link->second;
    s.program = d.program;
    s.python = d.python;
    s.output = d.output;
    s.input_outputs = d.input_outputs;
    s.sampled_outputs = d.sampled_outputs;
    s.format = spec.has_output || only_states ? d.format : nlohmann::json();
    s.slot_bytes = spec.has_output || only_states ? d.slot_bytes : 0;
    s.memory = s.link.memory;
    for (const output_spec& o : d.more) {
        ring_setup r{o.output, {}, o.format, o.slot_bytes};
        if (const auto link = p.links.find(spec.name + "." + o.output); link != p.links.end())
            r.link = link->second;
        r.memory = r.link.memory;
        s.more.push_back(std::move(r));
    }
    s.owner_commits = d.commits_on_host;
    if (spec.remote) {
        stage_spec seat = spec;
        seat.run = spec.remote->run;
        s.remote_program = find_program(p, seat);
        // the stage itself commits, because a frame from another host is complete only when the stage has
        // finished its own work
        s.owner_commits = true;
    }
    s.ends = d.ends;
    s.forwards_frames = d.forwards_frames;
    if (d.forwards_frames) s.spec.max_attempts = 0;  // 0: frames are never abandoned after deaths
    if (d.forwards_frames && sends_durably(spec) && !spec.in_flight) s.spec.in_flight = max_in_flight;
    s.deep_on_cpu = hooks.depth_on_cpu;
    s.writable_inputs = d.writable_inputs;
    s.state = d.state;
    s.mps = spec.isolation == isolation_kind::mps;
    try {
        const device_choice own_choice = choose_device(spec.device, machine, d.device);
        if (is_gpu(own_choice.id)) s.gpu_name = own_choice.name;
        s.may_leave_gpu = is_gpu(own_choice.id) && may_leave_gpu(p, spec);
        s.left_gpu = s.may_leave_gpu && on_cpu;
        const device_choice c = s.left_gpu ? choose_device("cpu", machine) : own_choice;
        s.device = c.id;
        s.device_name = c.name;
        s.read_only_host = c.read_only_host;
        s.same_host_address = c.same_host_address;
        s.one_server = c.one_process;
        for (const std::string& each : s.left_gpu ? std::vector<std::string>() : spec.devices) {
            const device_choice own = choose_device(each, machine, d.device);
            s.devices.push_back({own.id, own.name});
            s.read_only_host = s.read_only_host && own.read_only_host;
            s.same_host_address = s.same_host_address && own.same_host_address;
            s.one_server = s.one_server || own.one_process;
            s.device_name += s.devices.size() > 1 ? "+" + own.name : "";
        }
        s.mps = s.mps && !s.left_gpu && (c.id.kind == device::device_kind::cuda || hooks.mps_on_cpu);
        // ipc memory is needed if the driver is too old, or cannot export its memory as descriptors
        for (u32 o = 0; !c.vmm && o <= s.more.size(); ++o) s.ring(o).memory = device::memory_kind::ipc;
    } catch (const device_error& e) {
        throw device_error(
            fmt::format("{}: stage {}: {}", spec.position_of("device").text(), spec.name, e.what()));
    }
    return s;
}

std::vector<asset_setup> assets_from(const pipeline& p, const std::vector<stage_description>& described) {
    std::vector<asset_setup> out;
    for (u32 k = 0; k < described.size(); ++k) {
        for (const asset_spec& a : described[k].makes) {
            const auto other =
                std::find_if(out.begin(), out.end(), [&](const asset_setup& o) { return o.name == a.name; });
            if (other != out.end())
                refuse(p.stages[k].at,
                       fmt::format("the stages {} and {} both produce the asset {}: remove one of them",
                                   p.stages[other->maker].name, p.stages[k].name, a.name));
            if (a.bytes > 0) out.push_back({a.name, a.bytes, k, {k}});
        }
    }
    if (out.size() > shm::max_assets)
        throw config_error(fmt::format("{}: more than {} assets", p.file, shm::max_assets));
    for (u32 k = 0; k < described.size(); ++k) {
        for (const std::string& name : described[k].uses) {
            const auto made =
                std::find_if(out.begin(), out.end(), [&](const asset_setup& o) { return o.name == name; });
            if (made == out.end())
                refuse(p.stages[k].at,
                       fmt::format("stage {} reads the asset {}, which no stage of this pipeline produces",
                                   p.stages[k].name, name));
            if (made->maker != k) made->users.push_back(k);
        }
    }
    return out;
}

// If checkpoints were less frequent, the sender would wait for one with all frames that it can keep.
void require_frequent_checkpoints(const pipeline& p, const run_setup& s) {
    if (s.checkpoint_every <= run::most_every_of_link || !s.has_state() ||
        std::none_of(s.stages.begin(), s.stages.end(), [](const stage_setup& st) { return st.receives(); }))
        return;
    refuse(p.key_at.at("checkpoint_every"),
           fmt::format("checkpoint_every = {}: another host sends the frames of this run, and keeps at most "
                       "{} of them until a checkpoint has them: set at most {}",
                       s.checkpoint_every, run::most_kept_by_sender, run::most_every_of_link));
}

}  // namespace

bool stage_setup::reads(u32 stage) const noexcept {
    return std::find(spec.input_indices.begin(), spec.input_indices.end(), stage) != spec.input_indices.end();
}

bool stage_setup::reads(u32 stage, u32 output) const noexcept {
    for (std::size_t i = 0; i < spec.input_indices.size(); ++i)
        if (spec.input_indices[i] == stage && output_of_input(i) == output) return true;
    return false;
}

bool stage_setup::samples(u32 stage, u32 output) const noexcept {
    for (std::size_t i = 0; i < spec.sampled_indices.size(); ++i)
        if (spec.sampled_indices[i] == stage && output_of_sampled(i) == output) return true;
    return false;
}

u32 stage_setup::instances_on(const std::string& uuid) const noexcept {
    if (devices.empty()) return device.uuid == uuid ? spec.instances : 0;
    u32 count = 0;
    for (u32 k = 0; k < spec.instances; ++k) count += device_of(k).uuid == uuid ? 1 : 0;
    return count;
}

bool run_setup::has_mps() const noexcept {
    return std::any_of(stages.begin(), stages.end(), [](const stage_setup& s) {
        return s.mps || (s.left_gpu && s.spec.isolation == isolation_kind::mps);
    });
}

// With a sampled input, two runs may produce different pictures, because the same frame may use different
// frames of the sampled input in the two runs. It may also use another one when it is produced again after a
// death.
std::string run_setup::why_not_comparable() const {
    std::string text;
    for (const stage_setup& s : stages)
        if (!s.spec.sampled_inputs.empty())
            text += fmt::format("{}stage {} takes the newest frame of {}", text.empty() ? "" : ", ",
                                s.spec.name, fmt::join(s.spec.sampled_inputs, " and "));
    return text;
}

bool run_setup::has_state() const noexcept {
    return std::any_of(stages.begin(), stages.end(), [](const stage_setup& st) { return st.state; });
}

std::string checkpoint_folder_of(const pipeline& p) {
    const std::string to = p.checkpoint_to.empty() ? p.name + ".checkpoints" : p.checkpoint_to;
    return (fs::path(folder_of(p)) / to).lexically_normal().string();
}

std::vector<ring_place> run_setup::rings() const {
    std::vector<ring_place> all;
    for (u32 k = 0; k < stages.size(); ++k)
        for (u32 o = 0; o < stages[k].outputs(); ++o) all.push_back({k, o});
    return all;
}

ring::plan plan_of(const run_setup& s) {
    ring::plan p;
    p.pipeline = s.name;
    p.width = s.width;
    p.height = s.height;
    p.fps = s.fps;
    p.frame_timeout_ns = s.frame_timeout_ns();
    p.latest_lease_ns = s.latest_lease_ns();
    p.end = s.end;
    p.first = s.counters;
    for (const stage_setup& from : s.stages) {
        ring::stage_plan to = stage_plan_of(from.spec, from.link);
        if (from.lanes != 0) to.in_flight = from.lanes;
        if (from.window != 0) to.window = from.window;
        to.has_output = from.has_output();
        to.owner_commits = from.owner_commits;
        to.ends = from.ends;
        to.state = from.state;
        to.slot_bytes = from.slot_bytes;
        to.input_outputs = from.input_outputs;
        to.sampled_outputs = from.sampled_outputs;
        for (u32 o = 1; o < from.outputs(); ++o) {
            const ring_setup& r = from.ring(o);
            const u32 window = r.window != 0 ? r.window : r.link.window.value_or(0);
            to.more.push_back({from.ring_name(o), window, r.slot_bytes, r.link.latest_lease_ns()});
        }
        p.stages.push_back(std::move(to));
    }
    return p;
}

void require_reach(const run_setup& s, const machine_offer& machine) {
    const std::vector<ring_place> rings = s.rings();
    const auto maps_ring = [&](u32 stage, u32 link) {
        const ring_place at = rings.at(link);
        return at.stage == stage || s.stages[stage].maps(at.stage, at.output);
    };
    for (const memory_item& m : plan_memory(s)) {
        for (u32 k = 0; k < s.stages.size(); ++k) {
            const bool maps = m.asset
                                  ? std::find(s.assets[m.index].users.begin(), s.assets[m.index].users.end(),
                                              k) != s.assets[m.index].users.end()
                                  : maps_ring(k, m.index);
            if (maps) require_reach_of(s, m, k, machine);
        }
    }
}

std::string now_stamp() {
    const std::time_t now = std::time(nullptr);
    std::tm t{};
    localtime_r(&now, &t);
    char text[32];
    std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &t);
    return text;
}

void prepare_outputs(run_setup& s, const std::string& stamp) {
    // The output directory is created by the stage that writes files into it. If there is no working
    // directory, that stage reports the error.
    std::error_code failed;
    if (const fs::path here = fs::current_path(failed); !failed)
        s.output_directory = (here / "runs" / fmt::format("{}-{}", s.name, stamp)).string();
    name_own_output(s);
    const auto displays = std::count_if(s.stages.begin(), s.stages.end(), writes_pictures);
    for (stage_setup& st : s.stages) {
        if (!writes_pictures(st)) continue;
        const nlohmann::json given = st.spec.settings.value("out", nlohmann::json(default_pattern));
        if (!given.is_string()) continue;  // the stage itself refuses the value with its own message
        const std::string pattern = given;
        if (pattern.empty() || pattern == "none") continue;
        fs::path whole = pattern;
        if (whole.is_relative()) {
            // throws an error with the reason why the working directory cannot be read
            if (s.output_directory.empty()) (void)working_directory();
            whole = as_pattern(s.output_directory);
            if (displays > 1) whole /= st.spec.name;
            whole = (whole / pattern).lexically_normal();
        }
        const std::optional<std::string> literal = literal_text(whole.parent_path().string());
        const fs::path folder = literal ? fs::path(*literal) : whole.parent_path();
        // if the folder contains a placeholder, the stage refuses the pattern
        if (literal) make_writable(folder, "pictures");
        st.spec.settings["out"] = whole.string();
        const bool film = whole.extension() == ".mp4";
        if (film && s.fps > 0 && !st.spec.settings.contains("film_fps")) st.spec.settings["film_fps"] = s.fps;
        if (film && s.pictures.empty()) s.pictures = literal_text(whole.string()).value_or(whole.string());
        if (s.pictures.empty())
            s.pictures = displays > 1 && fs::path(pattern).is_relative() ? folder.parent_path().string()
                                                                         : folder.string();
    }
}

std::string created_output_directory(const run_setup& s) {
    std::error_code ignored;
    return fs::is_directory(s.output_directory, ignored) ? s.output_directory : "";
}

void make_log_folder(const std::string& directory) { make_writable(fs::path(directory) / "logs", "logs"); }

machine_offer probe_for(const pipeline& p) {
    const bool wanted =
        std::any_of(p.stages.begin(), p.stages.end(), [](const stage_spec& s) { return s.device != "cpu"; });
    return wanted ? probe_machine(executable_folder()) : machine_offer{};
}

run_setup setup_from(const pipeline& p, const run_options& o, const machine_offer& machine,
                     const std::vector<std::string>& on_cpu) {
    CAROUSEL_ASSERT(o.stages.size() == p.stages.size());
    run_setup s;
    static_cast<pipeline_spec&>(s) = p;
    s.file = p.file;
    s.folder = folder_of(p);
    s.checkpoint_folder = checkpoint_folder_of(p);
    s.parameters = o.parameters ? *o.parameters : plan_parameters(p, o.stages);
    if (p.frames > 0) s.end = p.frames;
    s.counters = o.hooks.counters;
    s.kept_records = o.hooks.kept_records.value_or(s.kept_records);
    s.kill_delay_ns = o.hooks.kill_delay_ns;
    s.overruns_anywhere = o.hooks.overruns_anywhere;
    s.scribbles_anywhere = o.hooks.scribbles_anywhere;
    s.audits_at_deaths_alone = o.hooks.audits_at_deaths_alone;
    s.report_path = o.report_file;
    s.color = o.color;
    s.terminal = understands_escapes(STDERR_FILENO);
    for (u32 k = 0; k < p.stages.size(); ++k)
        s.stages.push_back(
            stage_from(p, p.stages[k], o.stages[k], machine, o.hooks,
                       std::find(on_cpu.begin(), on_cpu.end(), p.stages[k].name) != on_cpu.end()));
    s.inexact_stages = inexact_stages(p, o.stages);
    require_frequent_checkpoints(p, s);
    s.assets = assets_from(p, o.stages);
    const bool same = std::all_of(s.stages.begin(), s.stages.end(), [&](const stage_setup& st) {
        return st.device_name == s.stages.front().device_name;
    });
    const free_memory memory = free_memory_of(machine);
    choose_depths(s, memory);
    choose_standbys(s, memory);
    require_reach(s, machine);
    require_guards(s);
    s.device_name = same ? s.stages.front().device_name : "mixed";
    return s;
}

}  // namespace carousel::supervisor
