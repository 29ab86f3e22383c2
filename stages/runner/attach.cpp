#include "stages/runner/attach.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <thread>

#include "control/memory_message.hpp"
#include "control/stage_message.hpp"
#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "run/directory.hpp"
#include "shm/block_guard.hpp"
#include "shm/process_fd.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"

namespace carousel::stages {
namespace {

using nlohmann::json;

constexpr u64 accept_patience_ns = 30 * ns_per_s;  ///< timeout for a supervisor that does not reply
/// The same during a rebuild, which may wait for a device that ends the work of dead processes.
constexpr u64 rebuild_patience_ns = 180 * ns_per_s;

shm::unique_fd connect_within(const std::string& path, double wait_s) {
    const u64 until = now_ns() + static_cast<u64>(wait_s * 1e9);
    for (;;) {
        shm::unique_fd s = shm::connect_to(path, accept_patience_ns);
        if (s) return s;
        const int why = errno;
        if (now_ns() >= until)
            throw shm_error(
                fmt::format("no supervisor at {}: {}{}: start the pipeline (`carousel run FILE`), or choose "
                            "it with -p NAME",
                            path, errno_text(why), wait_s > 0 ? fmt::format(" after {} s", wait_s) : ""));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

// If a field is missing, the value in the control block remains in effect; the runner chooses no value
// itself.
depth_rule depth_of(const json& j) {
    depth_rule r;
    if (!j.is_object()) return r;
    const std::string latency = j.value("latency", ""), sharing = j.value("sharing", "");
    r.latency = latency == "low"          ? latency_request::low
                : latency == "throughput" ? latency_request::throughput
                                          : latency_request::balanced;
    r.sharing = sharing == "turns"     ? device_sharing::turns
                : sharing == "overlap" ? device_sharing::overlap
                : sharing == "alone"   ? device_sharing::alone
                                       : device_sharing::cpu;
    r.lanes_given = j.value("lanes_given", true);
    r.window_given = j.value("window_given", true);
    r.contexts = j.value("contexts", 1U);
    r.token = j.value("token", shm::none);
    r.turn_frames = j.value("turn_frames", 0U);
    r.turn_stages = j.value("turn_stages", std::vector<u32>());
    return r;
}

void take(session::attached&& from, attachment& a) {
    run::attach_message& m = from.message;
    a.run_id = std::move(m.run_id);
    a.runtime_directory = std::move(m.runtime_directory);
    a.output_directory = std::move(m.output_directory);
    a.stage = std::move(m.stage);
    a.incarnation = m.incarnation;
    a.standby = m.standby;
    a.width = m.width;
    a.height = m.height;
    const char* grace = std::getenv("CAROUSEL_SUPERVISOR_GRACE_S");
    a.supervisor_grace_s = grace != nullptr ? std::strtod(grace, nullptr) : m.supervisor_grace_s;
    a.kept_json = m.kept.dump();
    a.settings_json = m.settings.dump();
    a.checkpoint_folder = std::move(m.checkpoint_folder);
    a.checkpoint_every = m.checkpoint_every;
    a.checkpoint = m.checkpoint;
    a.asked_device = std::move(m.asked_device);
    a.folder = std::move(m.folder);
    a.device = std::move(m.device);
    for (const run::attach_message::input& i : m.inputs)
        a.inputs.push_back({i.stage, ring::frame_format::from_json(i.format.dump())});
    for (const run::attach_message::sampled_input& i : m.sampled)
        a.sampled.push_back({{i.stage, ring::frame_format::from_json(i.format.dump())}, i.described});
    for (const run::attach_message::output& o : m.outputs)
        a.outputs.emplace_back(o.name, ring::frame_format::from_json(o.format.dump()));
    if (!m.parameters.is_null()) a.parameters = ring::parameter_schema::from_json(m.parameters);
    a.depth = depth_of(m.depth);
    a.graphs = m.graphs;
    a.links = std::move(from.links);
    a.assets = std::move(from.assets);
    a.fds = std::move(from.fds);
}

// Never destroyed, because an exit note may be written into the block after the runtime is gone.
struct membership {
    std::unique_ptr<const shm::segment> block;
    shm::unique_fd folder;
};

membership& own() {
    static membership& m = *new membership;
    return m;
}

}  // namespace

attachment attach(const attach_request& request) {
    attachment a;
    a.socket = connect_within(run::control_socket(request.directory), request.wait_s);
    session::move_above_driver(a.socket);
    join_folder(request.directory);
    crash_here(crash_point::connected);
    take(session::introduce(a.socket.get(), {request.stage, request.incarnation}, accept_patience_ns), a);
    crash_here(crash_point::memory_received);
    return a;
}

void report_detached(int socket, const std::string& stage) {
    if (!shm::send_message(socket, write_message(run::detached_message{}).dump()))
        throw shm_error(
            fmt::format("reporting to the supervisor that {} is detached: {}", stage, errno_text(errno)));
    crash_here(crash_point::detach_reported);
}

attachment attach_again(shm::unique_fd socket, const std::string& stage, const std::string& directory) {
    attachment a;
    a.socket = std::move(socket);
    take(session::await_answer(a.socket.get(), "stage " + stage, rebuild_patience_ns), a);
    join_folder(directory);
    crash_here(crash_point::memory_received);
    return a;
}

shm::control_block& join_run(const std::string& run_id) {
    own().block = std::make_unique<const shm::segment>(shm::segment::join(run_id));
    return own().block->block();
}

void join_folder(const std::string& runtime_directory) { own().folder = shm::join_folder(runtime_directory); }

void detach_from_run() noexcept {
    shm::forget_block();
    own().block.reset();
    own().folder.reset();
}

void release_run() noexcept {
    if (own().block) own().block->release();
    if (own().folder) shm::unlock(own().folder.get());
}

}  // namespace carousel::stages
