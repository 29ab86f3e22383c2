// `carousel doctor`: reports on the machine, its memory, its limits and its screen.

#include "doctor/doctor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "core/cgroup.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "os/subprocess.hpp"
#include "os/table.hpp"
#include "run/directory.hpp"
#include "shm/block_guard.hpp"
#include "shm/control_block.hpp"
#include "shm/fd_socket.hpp"
#include "shm/sealed_memory.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
/// Size of the block of a run with eight rings of the maximum number of slots; most runs need less.
constexpr u64 block_bytes = shm::word_bytes + 8 * shm::frame_bytes(shm::max_slots);
constexpr u64 room_wanted = 12 * block_bytes;
constexpr rlim_t fds_needed = 1000;  // a stage's liveness socket has the number 900, above the numbers of the
                                     // driver's files
constexpr u64 processes_needed = 64;  // processes and threads of a run with four stages
constexpr std::size_t longest_socket = 107;

void examine_memfd(std::vector<finding>& all) {
    const shm::unique_fd fd(::memfd_create("carousel-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const bool sealed = fd && ::ftruncate(fd.get(), 4096) == 0 &&
                        ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
    if (!sealed) {
        all.push_back(
            {"sealed memory", verdict::fail,
             fmt::format("memfd_create or sealing failed: {}", errno_text(errno)),
             "CPU rings need sealed memory: use Linux 3.17 or newer and a container that permits it"});
    } else if (::ftruncate(fd.get(), 0) == 0) {
        all.push_back({"sealed memory", verdict::fail, "a memfd could be shrunk although it was sealed",
                       "report this kernel's version to Carousel's developers, because a faulty stage could "
                       "end other stages on this kernel"});
    } else {
        all.push_back({"sealed memory", verdict::ok, "memfds can be sealed against shrinking", ""});
    }
}

bool library_exists(const std::string& file) {
    for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                               "/usr/lib", "/usr/local/lib"}) {
        std::error_code failed;
        if (fs::exists(fs::path(folder) / file, failed)) return true;
    }
    return false;
}

bool in_path(const std::string& program) {
    const char* all = std::getenv("PATH");
    std::string text = std::string(all == nullptr ? "/usr/bin:/bin" : all) + ':';
    for (std::size_t at = 0, end; (end = text.find(':', at)) != std::string::npos; at = end + 1)
        if (end > at && ::access((text.substr(at, end - at) + "/" + program).c_str(), X_OK) == 0) return true;
    return false;
}

// `carousel doctor`: reports what this build supports, and how missing parts can be added. Programs and
// modules are next to carousel.

using nlohmann::json;

#ifdef CAROUSEL_WITH_TURBOJPEG
constexpr bool with_jpeg = true;
#else
constexpr bool with_jpeg = false;
#endif
#ifdef CAROUSEL_WITH_LZ4
constexpr bool with_lz4 = true;
#else
constexpr bool with_lz4 = false;
#endif
#ifdef CAROUSEL_WITH_ZSTD
constexpr bool with_zstd = true;
#else
constexpr bool with_zstd = false;
#endif

finding part(const char* name, bool there, const char* use, const char* packages) {
    return {name, there ? verdict::ok : verdict::warn,
            fmt::format("{}: {}", there ? "built" : "not built", use),
            there ? "" : fmt::format("run apt-get install {} and build again", packages)};
}

constexpr const char* links = "links to other hosts";

/// Returns the affinity mask of this process in the notation of a cpuset ("0-3,8"); "" if it is unknown.
std::string allowed_cpus() {
    constexpr std::string_view key = "\nCpus_allowed_list:\t";
    const std::string status = read_file("/proc/self/status").value_or("");
    const std::size_t at = status.find(key);
    if (at == std::string::npos) return "";
    return status.substr(at + key.size(), status.find('\n', at + 1) - at - key.size());
}

}  // namespace

void examine_machine(std::vector<finding>& all) {
    const cgroups groups = cgroups::of();
    const unsigned count = usable_cores(), affine = affine_cores();
    const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
    const auto quota = groups.cpu();
    const auto set = groups.cpu_set();
    std::string limited;
    if (count < affine && quota)
        limited = fmt::format(" of {} ({} allows {:.2f})", affine, quota->file, quota->cpus);
    else if (online > 0 && affine < static_cast<unsigned>(online))
        limited = fmt::format(" of {} ({})", online,
                              set && set->cpus == allowed_cpus()
                                  ? fmt::format("{} allows {}", set->file, set->cpus)
                                  : "the affinity mask of this process allows no more");
    all.push_back({"cores", count >= 2 ? verdict::ok : verdict::warn,
                   fmt::format("{}{} usable", count, limited),
                   count >= 2 ? "" : "all stages share one core, so expect few frames per second"});
    const u64 memory = shm::available_host_bytes();
    const auto group = groups.memory();
    all.push_back({"memory", memory >= (u64{1} << 30) ? verdict::ok : verdict::warn,
                   human_bytes(memory) + " available" +
                       (group ? fmt::format(" ({} allows {})", group->file, human_bytes(group->limit)) : ""),
                   memory >= (u64{1} << 30)
                       ? ""
                       : "CPU rings take about 100 MiB at 1280 x 720: choose a smaller --size"});
    utsname kernel{};
    if (::uname(&kernel) == 0)
        all.push_back({"kernel", verdict::ok,
                       fmt::format("{} {} {}", kernel.sysname, kernel.release, kernel.machine), ""});
}

void examine_shared_memory(std::vector<finding>& all, const std::string& folder) {
    struct stat info {};
    struct statfs room {};
    const std::string remedy = fmt::format(
        "mount a tmpfs there: mount -t tmpfs -o mode=1777 tmpfs {} (containers: --shm-size 256m)", folder);
    if (::stat(folder.c_str(), &info) != 0 || ::statfs(folder.c_str(), &room) != 0) {
        all.push_back(
            {"shared memory", verdict::fail, fmt::format("{}: {}", folder, errno_text(errno)), remedy});
    } else if (!S_ISDIR(info.st_mode) || ::access(folder.c_str(), W_OK | X_OK) != 0) {
        all.push_back({"shared memory", verdict::fail,
                       fmt::format("{} is not writable (mode {:o})", folder, info.st_mode & 07777U), remedy});
    } else {
        const u64 free_bytes = static_cast<u64>(room.f_bavail) * static_cast<u64>(room.f_bsize);
        const bool tmpfs = room.f_type == TMPFS_MAGIC;
        const verdict v = free_bytes < block_bytes             ? verdict::fail
                          : free_bytes < room_wanted || !tmpfs ? verdict::warn
                                                               : verdict::ok;
        all.push_back({"shared memory", v,
                       fmt::format("{}: {}, mode {:o}, {} free; a run needs {}", folder,
                                   tmpfs ? "tmpfs" : "not a tmpfs", info.st_mode & 07777U,
                                   human_bytes(free_bytes), human_bytes(block_bytes)),
                       v == verdict::ok ? ""
                                        : "`carousel clean` removes the files of dead runs; otherwise "
                                          "enlarge the tmpfs (containers: --shm-size 256m)"});
    }
    examine_memfd(all);
    all.push_back({"protection keys", verdict::ok,
                   shm::has_protection_keys()
                       ? std::string("available: a stage's own code can't write to a run's control block")
                       : fmt::format("unavailable ({}): a wild write of a stage can damage that stage's own "
                                     "pages of a run's control block; the other pages are protected",
                                     shm::why_no_keys()),
                   ""});
}

void examine_limits(std::vector<finding>& all) {
    rlimit files{}, locked{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
        const bool enough = files.rlim_cur >= fds_needed, possible = files.rlim_max >= fds_needed;
        all.push_back({"open files",
                       enough     ? verdict::ok
                       : possible ? verdict::warn
                                  : verdict::fail,
                       fmt::format("limit {} (hard {})", files.rlim_cur, files.rlim_max),
                       enough ? "" : "ulimit -n 1024"});
    }
    if (const auto pids = cgroups::of().pids())
        all.push_back(
            {"processes", pids->left() >= processes_needed ? verdict::ok : verdict::warn,
             fmt::format("{} of {} in use ({})", pids->used, pids->limit, pids->file),
             pids->left() >= processes_needed ? "" : "a run needs several dozen threads: raise the limit"});
    if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0) {
        const bool open = locked.rlim_cur == RLIM_INFINITY || locked.rlim_cur >= (u64{8} << 20);
        all.push_back(
            {"locked memory", open ? verdict::ok : verdict::warn,
             locked.rlim_cur == RLIM_INFINITY ? "no limit" : "limit " + human_bytes(locked.rlim_cur),
             open ? "" : "links between CPU and GPU stages page-lock their ring: run `ulimit -l unlimited`"});
    }
}

void examine_run_folder(std::vector<finding>& all) {
    const std::string folder = run::runs_folder();
    const std::string parent = fs::path(folder).parent_path().string();
    struct stat info {};
    const bool there = ::lstat(folder.c_str(), &info) == 0;
    if (there && (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())) {
        all.push_back({"runtime directory", verdict::fail, folder + " is not a folder that you own",
                       "remove it, or set XDG_RUNTIME_DIR to a folder that you own"});
    } else if (::access((there ? folder : parent).c_str(), W_OK | X_OK) != 0) {
        all.push_back({"runtime directory", verdict::fail,
                       fmt::format("{}: {}", there ? folder : parent, errno_text(errno)),
                       "make it writable, or set XDG_RUNTIME_DIR to a folder that you own"});
    } else if (run::control_socket(folder + "/NAME-OF-PIPELINE").size() > longest_socket) {
        all.push_back({"runtime directory", verdict::warn,
                       folder + " may be too long for the path of a socket",
                       "set XDG_RUNTIME_DIR to a shorter one"});
    } else {
        all.push_back(
            {"runtime directory", verdict::ok, folder + (there ? "" : " (the first run creates it)"), ""});
    }
}

void examine_display(std::vector<finding>& all) {
    const char* x11 = std::getenv("DISPLAY");
    const char* wayland = std::getenv("WAYLAND_DISPLAY");
    const bool display = (x11 != nullptr && *x11 != 0) || (wayland != nullptr && *wayland != 0);
    all.push_back({"display", display ? verdict::ok : verdict::warn,
                   display ? fmt::format("{}", x11 != nullptr && *x11 != 0 ? x11 : wayland)
                           : "no viewer: DISPLAY and WAYLAND_DISPLAY are not set",
                   display ? "" : "pictures are still written; over ssh, connect with ssh -X"});
    const bool gl = library_exists("libGL.so.1"), egl = library_exists("libEGL.so.1");
    all.push_back({"OpenGL", gl && egl ? verdict::ok : verdict::warn,
                   fmt::format("libGL {}, libEGL {}", gl ? "yes" : "no", egl ? "yes" : "no"),
                   gl && egl ? "" : "optional, for the viewer: run apt install libgl1 libegl1"});
    const bool ffmpeg = in_path("ffmpeg");
    all.push_back({"ffmpeg", verdict::ok,
                   ffmpeg ? "found" : "not found; it is optional and makes films from the pictures", ""});
}

// Runs another program, because this program is not linked with UCX, and because UCX's search for devices may
// hang.
finding examine_links(const std::string& folder, u32 timeout_ms) {
    const std::string program = folder + "/carousel-send";
    const char* use = "carousel-send, carousel-receive and carousel-remote, over UCX";
    if (::access(program.c_str(), R_OK) != 0) return part(links, false, use, "libucx-dev libssl-dev");
    const subprocess_result r = run_subprocess({program, "--ucx"}, "", timeout_ms);
    const json j = parse_json_or_discard(r.output, json_channel::document);
    if (!r.succeeded() || !j.is_object() || !j.contains("version") || !j["version"].is_string())
        return {links, verdict::warn,
                fmt::format("{} --ucx: {}", program,
                            r.succeeded() ? "it does not report its UCX version" : r.ending(timeout_ms)),
                "links may not work: reinstall UCX (apt-get install --reinstall libucx0) and build again"};
    std::string set;
    const json& settings = j.contains("set") ? j["set"] : json::object();
    for (const auto& [name, value] : settings.items())
        set += fmt::format("{}{} {}", set.empty() ? "" : ", ", name,
                           !value.is_string()                 ? "by each link"
                           : value.get<std::string>().empty() ? "empty"
                                                              : value.get<std::string>());
    const json cuda = j.value("cuda", json());
    return {links, verdict::ok,
            fmt::format("built: {} {}; transport: tcp, or a link's `transports`; {}: set by these "
                        "programs; GPU frames are sent through page-locked memory, or with memory = "
                        "\"direct\" straight from GPU memory: {}",
                        use, j["version"].get<std::string>(), set,
                        !cuda.is_boolean() ? "can't determine whether this UCX supports CUDA"
                        : cuda.get<bool>()
                            ? "this UCX supports CUDA, as memory = \"direct\" requires"
                            : "this UCX does not support CUDA here, as memory = \"direct\" requires"),
            ""};
}

void examine_build(std::vector<finding>& all, const doctor_places& places) {
    const std::string folder = executable_folder();
    const auto there = [&](const char* file) { return ::access((folder + "/" + file).c_str(), R_OK) == 0; };
    all.push_back(part("films", there("libcarousel-film.so"), "--out film.mp4",
                       "libavcodec-dev libavformat-dev libavutil-dev libswscale-dev"));
    all.push_back(part("dashboard", there("carousel-web"), "--http, `carousel view`", "libturbojpeg0-dev"));
    all.push_back(part("viewer", there("carousel-viewer"), "a window that shows a run",
                       "libimgui-dev libglfw3-dev libepoxy-dev libegl-dev"));
    all.push_back(part("JPEG textures", with_jpeg, "textures of glTF files and texture = \"x.jpg\"",
                       "libturbojpeg0-dev"));
    all.push_back(part("compressed recordings", with_lz4 && with_zstd,
                       "record_compression = \"lz4\", \"zstd\"", "liblz4-dev libzstd-dev"));
    all.push_back(examine_links(folder, places.probe_timeout_ms));
}

}  // namespace carousel::supervisor
