// `carousel hold`.

#include <fcntl.h>
#include <fmt/format.h>

#include <string>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ipc/gpu_memory.hpp"
#include "ipc/holder.hpp"
#include "ipc/spaces.hpp"
#include "os/event_loop.hpp"
#include "os/spawn.hpp"
#include "os/table.hpp"
#include "spaces/spaces.hpp"
#include "spec/pipeline_keys.hpp"
#include "spec/programs.hpp"
#include "supervisor/stores/memory_store.hpp"

namespace carousel::supervisor {

// The GPU operations of `carousel hold`. They are done by carousel-alloc, because this process never uses
// CUDA.

class gpu_programs final : public ipc::gpu_helper {
public:
    /// `folder`: contains carousel-alloc.
    gpu_programs(std::string folder, int ordinal) : folder_(std::move(folder)), ordinal_(ordinal) {}
    [[nodiscard]] ipc::gpu_memory make(u64 bytes) override;
    [[nodiscard]] ipc::gpu_repairer start_repairer() override;
    void reap(const ipc::gpu_repairer& m) override;

private:
    std::string folder_;
    int ordinal_;
};

ipc::gpu_memory gpu_programs::make(u64 bytes) {
    memory_item item;
    item.name = "the space";
    item.bytes = bytes;
    item.choice.kind = device::memory_kind::vmm;
    item.choice.device.kind = device::device_kind::cuda;
    item.choice.device.ordinal = ordinal_;
    memory_store store;
    store.make({item}, folder_);
    std::vector<int> fds;
    const nlohmann::json made = store.describe(false, 0, fds);
    ipc::gpu_memory out;
    out.bytes = made.at("bytes").get<u64>();
    out.uuid = made.at("uuid").get<std::string>();
    out.fd.reset(::fcntl(fds.at(0), F_DUPFD_CLOEXEC, 3));
    if (!out.fd) throw shm_error("keeping GPU memory: " + errno_text(errno));
    return out;
}

ipc::gpu_repairer gpu_programs::start_repairer() {
    auto [ours, theirs] = shm::socket_pair();
    spawn_request r;
    r.argv = {folder_ + "/carousel-alloc", "--repair", "--fd", "3"};
    r.extra_fd = theirs.get();
    spawned s = spawn(r);
    return {{s.pid, s.start_time}, std::move(s.pidfd), std::move(ours)};
}

void gpu_programs::reap(const ipc::gpu_repairer& m) { (void)supervisor::reap(m.pidfd.get()); }

// `carousel hold`.

namespace {

struct hold_arguments {
    std::string name, size, device = "cpu", device_size = "256M";
    bool while_used = false;
};

/// Completion: returns the spaces without a holder.
std::vector<std::string> orphaned_spaces(const completion_request&) {
    std::vector<std::string> names;
    for (const ipc::found_space& s : ipc::spaces_here())
        if (s.state == ipc::space_state::orphaned) names.push_back(s.name);
    return names;
}

/// Parses "256M" as bytes; returns 0 for "".
u64 bytes_from(const char* option, const std::string& text) {
    if (text.empty()) return 0;
    std::size_t used = 0;
    u64 number = 0;
    try {
        number = text[0] == '-' ? 0 : std::stoull(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    const std::string unit = text.substr(used);
    const u64 shift = unit.empty() || unit == "B" ? 0U
                      : unit == "K"               ? 10U
                      : unit == "M"               ? 20U
                      : unit == "G"               ? 30U
                                                  : 99U;
    if (number == 0 || shift == 99U || number > (u64{1} << 44U >> shift))
        throw config_error(fmt::format("{} {}: expected a size such as 256M (a number followed by K, M or G)",
                                       option, text));
    return number << shift;
}

/// Returns 0 for "cuda:0"; -1 for "cpu".
int ordinal_from(const std::string& text) {
    if (text == "cpu") return -1;
    if (const auto number = gpu_number(text)) return static_cast<int>(*number);
    throw config_error(fmt::format("--device {}: expected cpu or cuda:N, like cuda:0", text));
}

/// Decides when a space with --while-used ends: when its last client has left, or if none comes.
class use {
public:
    explicit use(bool matters) : matters_(matters) {}
    [[nodiscard]] bool has_ended(u32 clients) noexcept {
        if (clients > 0) used_ = true;
        return matters_ && clients == 0 && (used_ || now_ns() - since_ns_ > first_client_ns);
    }

private:
    static constexpr u64 first_client_ns = 10 * ns_per_s;
    bool matters_, used_ = false;
    u64 since_ns_ = now_ns();
};

int hold(const hold_arguments& a, const cli_environment& env) {
    require_no_run(a.name);
    interrupts stop;
    const int ordinal = ordinal_from(a.device);
    gpu_programs programs(executable_folder(), std::max(ordinal, 0));
    const u64 gpu_bytes = ordinal < 0 ? 0 : bytes_from("--device-size", a.device_size);
    ipc::holder h(a.name, bytes_from("--size", a.size), ipc::memory_when::at_once, &programs, gpu_bytes);
    const u64 on_gpu = h.block().gpu_bytes;
    env.out << fmt::format("{} \"{}\": {}{}{}\n", h.adopted() ? "took over" : "holding", a.name,
                           human_bytes(h.block().bytes),
                           on_gpu == 0 ? "" : fmt::format(", {} of GPU memory", human_bytes(on_gpu)),
                           h.adopted() ? fmt::format(", {} clients", h.clients()) : "");
    env.out.flush();
    for (use clients(a.while_used); !stop.sleep(0) && !clients.has_ended(h.clients());) h.run_once(100);
    if (h.clients() > 0)
        env.err << fmt::format("{} clients still use \"{}\"; a new `carousel hold {}` takes it over\n",
                               h.clients(), a.name, a.name);
    return exit_code::ok;
}

command_action add_hold_command(const command_parts& p) {
    const auto a = std::make_shared<hold_arguments>();
    p.offers[p.app.add_option("NAME", a->name, "Name with which programs open the space")->required()] =
        orphaned_spaces;
    p.app.add_option("--size", a->size, "Size of its memory, like 256M [64M]")->type_name("BYTES");
    p.app.add_option("--device", a->device,
                     "cpu, or cuda:N for additional memory on that GPU, which kernels can use [cpu]");
    p.app.add_option("--device-size", a->device_size, "Size of its GPU memory [256M]")->type_name("BYTES");
    p.app.add_flag("--while-used", a->while_used,
                   "End when the last client has left, or if none comes within 10 s");
    p.app.footer(
        "\n"
        "Programs open it with carousel::ipc::open(\"NAME\"), see <carousel/ipc.hpp>. Ctrl-C ends it; its "
        "clients continue,\n"
        "and a second `carousel hold NAME` takes them over.\n"
        "\n"
        "Examples:\n"
        "  carousel hold lab\n"
        "  carousel hold lab --size 1G\n"
        "  carousel hold lab --device cuda:0 --device-size 4G");
    return [a](const common_words&, const cli_environment& env) { return hold(*a, env); };
}

}  // namespace

extern const command hold_command{"hold", "Hold memory, semaphores and queues for your own programs",
                                  add_hold_command};

}  // namespace carousel::supervisor
