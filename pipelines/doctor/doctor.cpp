#include "doctor/doctor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/enum_names.hpp"
#include "core/json_text.hpp"
#include "os/subprocess.hpp"
#include "os/table.hpp"
#include "spec/programs.hpp"
#include "supervisor/plan/context_memory.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string text_of(const json& j, const char* key) {
    const auto at = j.find(key);
    return at != j.end() && at->is_string() ? at->get<std::string>() : "";
}
bool flag_of(const json& j, const char* key) {
    const auto at = j.find(key);
    return at != j.end() && at->is_boolean() && at->get<bool>();
}
u64 whole_of(const json& j, const char* key) {
    const auto at = j.find(key);
    return at != j.end() && at->is_number_unsigned() ? at->get<u64>() : 0;
}

finding capability(const std::string& gpu, const char* what, bool there, verdict otherwise, const char* use,
                   const char* remedy) {
    return {fmt::format("{} {}", gpu, what), there ? verdict::ok : otherwise,
            fmt::format("{}: {}", there ? "yes" : "no", use), there ? "" : remedy};
}

void findings_of_device(std::vector<finding>& all, const json& d) {
    const std::string gpu = fmt::format("cuda:{}", whole_of(d, "ordinal"));
    const std::string error_text = text_of(d, "error");
    const bool free_known = d.contains("free_bytes") && d["free_bytes"].is_number();
    const u64 free = whole_of(d, "free_bytes");
    all.push_back(
        {gpu, error_text.empty() ? verdict::ok : verdict::warn,
         fmt::format("{}, compute {}, {} of memory{}{}", text_of(d, "name"), text_of(d, "compute"),
                     human_bytes(whole_of(d, "total_bytes")),
                     free_known ? fmt::format(", {} free, room for the contexts of {} processes or standbys",
                                              human_bytes(free), free / context_bytes)
                                : "",
                     error_text.empty() ? "" : "; " + error_text),
         error_text.empty()
             ? ""
             : "check `nvidia-smi -q` (compute mode, MPS, other users of the GPU), or use --device cpu"});
    if (flag_of(d, "exclusive_process"))
        all.push_back(
            {gpu + " compute mode", verdict::warn,
             "EXCLUSIVE_PROCESS: stages need isolation = \"mps\", and have no standbys, which need a "
             "second MPS server",
             "nvidia-smi -c DEFAULT"});
    all.push_back(capability(gpu, "memory by fd", flag_of(d, "vmm_posix_fd"), verdict::warn,
                             "memory = \"vmm\", the default",
                             "set memory = \"ipc\" in the pipeline file's [link.STAGE]"));
    all.push_back(capability(
        gpu, "memory by handle", flag_of(d, "ipc_memory"), verdict::warn,
        "memory = \"ipc\"; the readers of such memory are unguarded because they map it for writing",
        "keep memory = \"vmm\""));
    all.push_back(capability(
        gpu, "IPC events", flag_of(d, "ipc_events"), verdict::warn,
        "how a process detects that another process's frame is complete",
        "this GPU or driver (WSL, a virtual GPU?) can't share events between processes: use --device cpu"));
    const bool reads = flag_of(d, "read_only_host"), gaps = flag_of(d, "same_host_address");
    all.push_back(capability(gpu, "guarded inputs in host memory", reads, verdict::ok,
                             reads ? "an out-of-bounds write of a stage to a CPU ring ends only that stage"
                                   : "CPU rings are unguarded: an out-of-bounds write of a stage on this GPU "
                                     "can corrupt other stages",
                             ""));
    all.push_back(capability(gpu, "guard pages after slots in host memory", gaps, verdict::ok,
                             gaps ? "a stage's write beyond its slot of a CPU ring ends only that stage"
                                  : "CPU rings that a stage on this GPU fills have canaries after their "
                                    "slots instead of guard pages",
                             ""));
    all.push_back(capability(gpu, "stream memory operations", flag_of(d, "stream_mem_ops"), verdict::ok,
                             "not needed", ""));
}

/// With several GPUs, reports the GPUs whose memory this GPU's kernels can access. This matters for stages
/// and instances on different GPUs.
void add_reach(std::vector<finding>& all, const json& d, std::size_t devices) {
    if (devices < 2 || !d.contains("peers") || !d["peers"].is_array()) return;
    std::string text;
    for (const json& other : d["peers"])
        if (other.is_number_unsigned())
            text += fmt::format("{}cuda:{}", text.empty() ? "" : ", ", other.get<u64>());
    const bool whole = d["peers"].size() + 1 == devices;
    all.push_back({fmt::format("cuda:{} other GPUs", whole_of(d, "ordinal")),
                   whole ? verdict::ok : verdict::warn,
                   text.empty() ? "no peer access" : "peer access to " + text,
                   whole ? "" : "place stages that share a ring on GPUs with peer access to each other"});
}

bool any_exists(const std::string& folder, const std::vector<std::string>& names) {
    std::error_code failed;
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return fs::exists(folder + name, failed); });
}

bool has_device_of_a_gpu(const std::string& root) {
    std::error_code failed;
    for (fs::directory_iterator at(root + "/dev", failed), end; !failed && at != end; at.increment(failed)) {
        const std::string name = at->path().filename().string();
        if (name.starts_with("nvidia") && name.size() > 6 &&
            name.find_first_not_of("0123456789", 6) == std::string::npos)
            return true;
    }
    return false;
}

void examine_cuda(std::vector<finding>& all, const doctor_places& places) {
    all.push_back(driver_finding());
    const std::string probe = places.probe.empty() ? executable_folder() + "/carousel-probe" : places.probe;
    if (::access(probe.c_str(), X_OK) != 0) {
        all.push_back({"CUDA", verdict::warn, fmt::format("{} is missing, so GPUs can't be examined", probe),
                       "build the target carousel-probe"});
        return;
    }
    const subprocess_result r = run_subprocess({probe}, "", places.probe_timeout_ms);
    if (!r.succeeded()) {
        all.push_back({"CUDA", verdict::warn, fmt::format("{}: {}", probe, r.ending(places.probe_timeout_ms)),
                       "the driver failed: check `nvidia-smi` and `dmesg`; --device cpu works without it"});
        return;
    }
    for (finding& f : findings_of_probe(r.output)) all.push_back(std::move(f));
}

}  // namespace

finding driver_finding(const std::string& root) {
    std::ifstream in(root + "/proc/driver/nvidia/version");
    std::string kernel_module;
    std::getline(in, kernel_module);
    if (kernel_module.empty())
        return {"NVIDIA driver", verdict::warn, "no driver is loaded; stages run on the CPU backend",
                "for an NVIDIA GPU, install its driver on the host, also for containers"};
    std::string missing;
    const auto need = [&](bool there, const char* what) {
        if (!there) missing += (missing.empty() ? "" : ", ") + std::string(what);
    };
    need(any_exists(root, {"/dev/nvidiactl"}), "/dev/nvidiactl");
    need(any_exists(root, {"/dev/nvidia-uvm"}), "/dev/nvidia-uvm");
    need(has_device_of_a_gpu(root), "/dev/nvidiaN");
    std::vector<std::string> libraries;
    for (const char* folder :
         {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
          "/usr/local/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat"})
        libraries.push_back(std::string(folder) + "/libcuda.so.1");
    if (const char* path = std::getenv("LD_LIBRARY_PATH"); path != nullptr && root.empty())
        for (std::string_view rest = path; !rest.empty();) {
            const std::string_view folder = rest.substr(0, rest.find(':'));
            if (!folder.empty()) libraries.push_back(std::string(folder) + "/libcuda.so.1");
            rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
        }
    need(any_exists(root, libraries), "libcuda.so.1");
    if (missing.empty()) return {"NVIDIA driver", verdict::ok, kernel_module, ""};
    return {"NVIDIA driver", verdict::warn, fmt::format("{}; missing here: {}", kernel_module, missing),
            "in a container, pass the GPU in (podman --device nvidia.com/gpu=all, docker --gpus all, or in "
            "Kubernetes the resource nvidia.com/gpu); otherwise load nvidia-uvm and install the driver's "
            "libcuda"};
}

BOOST_DESCRIBE_ENUM(verdict, ok, warn, fail)
const char* name_of(verdict v) noexcept { return enum_name(v); }

std::vector<finding> findings_of_probe(const std::string& answer) {
    std::vector<finding> all;
    const json j = parse_json_or_discard(answer, json_channel::document);
    if (!j.is_object()) {
        all.push_back({"CUDA", verdict::warn, "the output of carousel-probe is not a JSON object",
                       "rebuild carousel-probe, because it is from another version"});
        return all;
    }
    if (!flag_of(j, "built_with_cuda")) {
        all.push_back(
            {"CUDA", verdict::warn, "this build has no CUDA backend; stages run on the CPU",
             "to use a GPU, install a CUDA toolkit (nvcc 12.0 or newer) and configure the build again"});
        return all;
    }
    const std::string driver = text_of(j, "driver_version"), runtime = text_of(j, "runtime_version"),
                      error_text = text_of(j, "error");
    all.push_back({"CUDA", error_text.empty() ? verdict::ok : verdict::warn,
                   fmt::format("driver {}, built for {}{}", driver.empty() ? "none" : driver,
                               runtime.empty() ? "?" : runtime, error_text.empty() ? "" : "; " + error_text),
                   error_text.empty() ? "" : "stages run on the CPU backend until this is fixed"});
    const auto devices = j.find("devices");
    if (devices != j.end() && devices->is_array())
        for (const json& d : *devices)
            if (d.is_object()) {
                findings_of_device(all, d);
                add_reach(all, d, devices->size());
            }
    return all;
}

std::vector<finding> examine(const doctor_places& places) {
    std::vector<finding> all;
    examine_machine(all);
    examine_shared_memory(all, places.shared_memory);
    examine_limits(all);
    examine_run_folder(all);
    examine_spaces(all);
    examine_processes(all);
    examine_death_signs(all);
    examine_cuda(all, places);
    examine_display(all);
    examine_build(all, places);
    return all;
}

std::string doctor_text(const std::vector<finding>& all, bool color) {
    std::size_t width = 0;
    for (const finding& f : all) width = std::max(width, width_of(f.name));
    constexpr const char* colors[] = {"\x1b[32m", "\x1b[33m", "\x1b[31m"};
    std::string out;
    for (const finding& f : all) {
        const std::string status = fmt::format("{:<4}", name_of(f.status));
        out +=
            color ? fmt::format("{}{}\x1b[0m", colors[static_cast<std::size_t>(f.status)], status) : status;
        out += fmt::format("  {}{}  {}\n", f.name, std::string(width - width_of(f.name), ' '),
                           printable(f.found));
        if (!f.remedy.empty())
            out += fmt::format("      {}  -> {}\n", std::string(width, ' '), printable(f.remedy));
    }
    return out;
}

json doctor_json(const std::vector<finding>& all) {
    json checks = json::array();
    for (const finding& f : all)
        checks.push_back(
            {{"name", f.name}, {"status", name_of(f.status)}, {"found", f.found}, {"remedy", f.remedy}});
    return {{"ok", !any_failed(all)}, {"checks", checks}};
}

bool any_failed(const std::vector<finding>& all) noexcept {
    return std::any_of(all.begin(), all.end(), [](const finding& f) { return f.status == verdict::fail; });
}

}  // namespace carousel::supervisor
