#include "stages/sdk/port_attachment.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "shm/fd_socket.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel {
namespace {

constexpr u64 poll_interval_ns = 100 * ns_per_ms, socket_patience_ns = ns_per_s;
constexpr u32 retry_us = 20'000;

/// Another user's folder can't be read; checked here, because the error would otherwise be that there is no
/// run.
void require_own(const std::string& folder) {
    struct stat info {};
    if (::stat(folder.c_str(), &info) == 0 && info.st_uid != ::geteuid())
        throw shm_error(
            fmt::format("opening the run in {}: it belongs to user {}, this process runs as {}: run as the "
                        "same user",
                        folder, info.st_uid, ::geteuid()));
}

[[noreturn]] void refuse_name(const std::string& name, const std::string& folder, f64 wait_s) {
    const std::string waited = wait_s > 0 ? fmt::format(" after {:.3g} s", wait_s) : "";
    if (name.find('/') != std::string::npos)
        throw config_error(fmt::format("no run has its folder at {}{}", folder, waited));
    std::vector<std::string> names;
    for (const run::record& r : run::watchable_runs()) names.push_back(r.name);
    throw config_error(fmt::format("no pipeline \"{}\" is running{} (searched in {}){}{}", name, waited,
                                   run::runs_folder(), did_you_mean_clause(name, names),
                                   names.empty() ? "; start one with `carousel run FILE`"
                                                 : fmt::format("; these are: {}", fmt::join(names, ", "))));
}

/// A supervisor listens, but the control block, which exists by then, has no name here, for example in a
/// container.
bool is_reachable_by_socket_only(const run::record& r) {
    return !shm::segment::exists(r.run_id) && shm::connect_to(r.socket(), socket_patience_ns);
}

std::unique_ptr<run::observer> find_run(const std::string& name, f64 wait_s, run::record& record) {
    const bool is_folder = name.find('/') != std::string::npos;
    if (!is_folder && !shm::is_folder_name(name))
        throw config_error(fmt::format("\"{}\" can't be the name of a run", name));
    const std::string folder = is_folder ? name : run::run_folder(name);
    const u64 until = now_ns() + static_cast<u64>(std::max(0.0, wait_s) * 1e9);
    for (;; ::usleep(retry_us)) {
        require_own(folder);
        const bool last = now_ns() >= until;
        const std::optional<run::record> r = run::read_record(folder);
        if (r) record = *r;
        if (r && is_reachable_by_socket_only(*r)) return nullptr;
        if (r && (run::is_alive(*r) || last)) try {
                auto found = std::make_unique<run::observer>(*r, run::observer::access::take_leases);
                if (found->poll().liveness.state != run::liveness::over) return found;
            } catch (const config_error&) {  // the clocks differ, so waiting would change nothing
                throw;
            } catch (const error&) {  // the run's block does not exist yet, or is of another version
                if (last && run::is_alive(*r)) throw;
            }
        if (last) refuse_name(name, folder, wait_s);
    }
}

device::device_id device_named(const std::string& text) {
    device::device_id id;
    if (text == "cpu") return id;
    id.kind = device::device_kind::cuda;
    if (text == "cuda") return id;
    const std::string number = text.rfind("cuda:", 0) == 0 ? text.substr(5) : "";
    const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), id.ordinal);
    if (number.empty() || failed != std::errc() || end != number.data() + number.size() || id.ordinal < 0)
        throw config_error(fmt::format("device \"{}\": a port takes \"\", cpu, cuda or cuda:N", text));
    return id;
}

}  // namespace

port_attachment::port_attachment(const std::string& name, open_options options)
    : options_(std::move(options)) {
    if (!options_.device.empty()) (void)device_named(options_.device);
    observer_ = find_run(name, options_.wait_s, found_);
}

void require_port_owner(const owner_process& owner, const std::string& port) {
    if (owner.is_this()) return;
    throw config_error(fmt::format(
        "port \"{}\" was opened by process {}: a forked child can't use it; open another port there", port,
        owner.pid()));
}

void port_attachment::require_owner() const {
    if (owner_.is_this()) return;
    throw config_error(fmt::format(
        "the run \"{}\" was opened by process {}: a forked child can't use it; open it there again",
        run().name, owner_.pid()));
}

// A run whose supervisor and stages were all killed leaves no record of its end: another supervisor may still
// restart it, so poll() waits as long as opening a run does.
void port_attachment::poll() {
    const u64 now = now_ns();
    if (ended_ || !observer_ || now < next_poll_ns_) return;
    next_poll_ns_ = now + poll_interval_ns;
    const run::observation s = observer_->poll();
    if (s.liveness.state != run::liveness::over) {
        over_since_ns_ = 0;
        return;
    }
    if (over_since_ns_ == 0) over_since_ns_ = now;
    const auto patience = static_cast<u64>(std::max(0.0, options_.wait_s) * 1e9);
    if (!telemetry::end_of(observer_->block()) && now < over_since_ns_ + patience) return;
    ended_ = true;
    ending_ = s.liveness.ending;
}

run::observer& port_attachment::observed() {
    if (!observer_) observer_ = std::make_unique<run::observer>(found_, run::observer::access::take_leases);
    return *observer_;
}

std::vector<std::string> port_attachment::stages() {
    const shm::control_block& c = observed().block();
    std::vector<std::string> names;
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k)
        names.emplace_back(c.link[k].name, ::strnlen(c.link[k].name, sizeof c.link[k].name));
    return names;
}

std::shared_ptr<device::context> port_attachment::device_for(const run::mapped_ring& ring,
                                                             bool& in_host_memory) {
    const bool gpu_memory = ring.memory.kind != device::memory_kind::memfd;
    device::device_id id = options_.device.empty() ? device::device_id{} : device_named(options_.device);
    in_host_memory = options_.device.empty() ? !gpu_memory : id.kind == device::device_kind::cpu;
    if (gpu_memory && id.kind == device::device_kind::cpu) {  // only the block's GPU can read it
        id.kind = device::device_kind::cuda;
        id.uuid = ring.memory.uuid.empty() ? ring.device.uuid : ring.memory.uuid;
    }
    return device_named_by(id);
}

const std::shared_ptr<device::context>& port_attachment::device_named_by(const device::device_id& id) {
    for (const auto& [known, context] : devices_)
        if (known.kind == id.kind && known.uuid == id.uuid && known.ordinal == id.ordinal) return context;
    return devices_.emplace_back(id, device::open(id, 1)).second;
}

std::string port_attachment::stall_reason() const {
    if (!observer_) return "`carousel ps` shows what the pipeline waits for";
    const shm::control_block& c = observer_->block();
    const u64 heartbeat = c.supervisor_heartbeat_ns.load(std::memory_order_relaxed);
    if (std::string notice = observer_->notice(now_ns(), heartbeat); !notice.empty()) return notice;
    for (u32 k = 0; k < std::min(c.seats, shm::max_seats); ++k)
        if (c.seat[k].paused.load(std::memory_order_relaxed) != 0 && c.seat[k].stage < shm::max_stages) {
            const char* name = c.stage[c.seat[k].stage].name;
            return fmt::format("{0} is stopped (`carousel cont {0}` continues it)", name);
        }
    return "`carousel ps` shows what the pipeline waits for";
}

}  // namespace carousel
