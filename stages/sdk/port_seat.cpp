#include "stages/sdk/port_seat.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "device/backend.hpp"
#include "frame/frame_format.hpp"
#include "run/directory.hpp"
#include "shm/fd_socket.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel {
namespace {

constexpr u32 try_again_us = 10'000;

constexpr u64 poll_interval_ns = 100 * ns_per_ms, socket_patience_ns = ns_per_s;
constexpr u32 retry_us = 20'000;

/// The folder of another user's run can't be read. This is checked first; without the check the error would
/// be that there is no run.
void require_own(const std::string& folder) {
    struct stat info {};
    const bool found = ::stat(folder.c_str(), &info) == 0;
    if (!found && errno == EACCES)
        throw shm_error(fmt::format(
            "opening the run in {}: {}: a run is accessible to its own user only, this process runs as {}",
            folder, errno_text(errno), ::geteuid()));
    if (found && info.st_uid != ::geteuid())
        throw shm_error(fmt::format(
            "opening the run in {}: it belongs to user {}, but this process runs as user {}: run as the "
            "same user",
            folder, info.st_uid, ::geteuid()));
}

[[noreturn]] void refuse_name(const std::string& name, const std::string& folder, f64 wait_s) {
    const std::string waited = wait_s > 0 ? fmt::format(" after {:.3g} s", wait_s) : "";
    if (name.find('/') != std::string::npos)
        throw config_error(fmt::format("no run has its folder at {}{}", folder, waited));
    std::vector<std::string> names;
    for (const run::record& r : run::watchable_runs()) names.push_back(r.name);
    throw config_error(fmt::format("no pipeline \"{}\" is running{} (searched in {}{}){}{}", name, waited,
                                   run::runs_folder(), shm::unused_runtime_text(),
                                   did_you_mean_clause(name, names),
                                   names.empty() ? "; start one with `carousel run FILE`"
                                                 : fmt::format("; these are: {}", fmt::join(names, ", "))));
}

/// Returns true if a supervisor listens on its socket, so that the control block exists, but this process
/// can't find the block by its name. This happens, for example, in a container.
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
            } catch (const config_error&) {  // the clocks differ, and waiting would not change that
                throw;
            } catch (const error&) {  // the run's block does not exist yet, or it has another version
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

port_seat::port_seat(std::shared_ptr<port_attachment> run, std::string stage, bool writes,
                     port_options options)
    : to_(std::move(run)),
      stage_(std::move(stage)),
      folder_(to_->run().folder),
      run_id_(to_->run().run_id),
      writes_(writes),
      options_(std::move(options)) {
    const u64 until = now_ns() + nanoseconds_of(to_->options().wait_s);
    for (;; ::usleep(try_again_us)) {
        const bool last = now_ns() >= until;
        try {
            if (connect()) break;
        } catch (const session::seat_taken&) {  // the seat's holder may have died a moment ago
            if (last) throw;
        } catch (const shm_error&) {  // the supervisor is starting, or taking the run over
            if (last) throw;
        }
    }
    inputs_ = session_->inputs();
    input_names_ = session_->input_names();
    output_ = session_->output();
    check_planes();
}

// Never runs in a forked child: every seat is owned by an owned_ptr, which deletes nothing in a forked
// child.
port_seat::~port_seat() {
    const device::kept_thread kept(may_use_gpu());
    session_.reset();
}

// Also returns true while there is no session, because the next incarnation may use a GPU.
bool port_seat::may_use_gpu() const noexcept {
    return !session_ || session_->where() == device::device_kind::cuda;
}

bool port_seat::connect() {
    session_ = owned_ptr<port_session>(new port_session(
        folder_, stage_, writes_,
        [this](const device::device_id& id) -> device::context& { return *to_->device_named_by(id); }));
    unsupervised_since_ns_ = 0;
    return true;
}

void port_seat::check_planes() const {
    if (options_.planes.empty()) return;
    const ring::frame_format& offered = writes_ ? output_ : inputs_.front();
    for (const auto& [name, text] : options_.planes) {
        const ring::plane expected = ring::plane_from_text(name, text), *there = offered.find(name);
        if (there == nullptr || there->type != expected.type || there->shape != expected.shape)
            throw config_error(
                fmt::format("port \"{}\" has frames of {}, but this program expects {} = \"{}\"", stage_,
                            offered.describe(), name, text));
    }
}

// A new supervisor may take over a run that has no supervisor. So, as long as the run's record exists, this
// function returns false until the run has had no supervisor for the time that opening a run waits (wait_s).
bool port_seat::has_run_ended(u64 now) {
    const std::optional<run::record> r = run::read_record(folder_);
    if (!r || r->run_id != run_id_) return true;
    if (unsupervised_since_ns_ == 0) unsupervised_since_ns_ = now;
    return now > unsupervised_since_ns_ + nanoseconds_of(to_->options().wait_s);
}

bool port_seat::reconnect(u64 until_ns) {
    for (;; ::usleep(try_again_us)) {
        try {
            return connect();
        } catch (const session::seat_taken&) {
            unsupervised_since_ns_ = 0;
        } catch (const shm_error&) {
            ended_ = has_run_ended(now_ns());
        } catch (const config_error&) {  // the port was accepted before, so a permanent refusal now means
                                         // that the run has ended
            ended_ = true;
        }
        if (ended_ || now_ns() >= until_ns) return false;
    }
}

void port_seat::require_owner() const { require_port_owner(owner_, stage_); }

bool port_seat::next(u64 timeout_ns) {
    require_owner();
    if (ended_) return false;
    if (has_frame_ && !writes_)
        throw config_error(
            fmt::format("frame {} of port \"{}\" was not committed before the next one was requested: the "
                        "run waits for its commit()",
                        session_->job().ring_sequence, stage_));
    if (has_frame_) {
        session_->reissue_frame();
        return true;
    }
    const device::kept_thread kept(may_use_gpu());
    const u64 until = now_ns() + timeout_ns;
    for (;;) {
        if (!session_ && !reconnect(until)) return false;
        switch (session_->begin(until)) {
            case port_session::wait_result::frame:
                hash = std::nullopt;
                return has_frame_ = true;
            case port_session::wait_result::nothing:
                return false;
            case port_session::wait_result::closed:
                ended_ = true;
                session_.reset();
                return false;
            case port_session::wait_result::lost:
                session_.reset();
                break;
        }
    }
}

void port_seat::commit() {
    port_session& l = session();
    const device::kept_thread kept(may_use_gpu());
    const u64 ring_sequence = l.job().ring_sequence;
    if (l.commit(hash)) {
        has_frame_ = false;
        return;
    }
    has_frame_ = false;
    session_.reset();  // this releases the buffers for which other processes wait
    throw port_revoked(fmt::format(
        "frame {} was not committed, because port \"{}\" was given to another incarnation in the "
        "meantime (this one had the frame longer than frame_timeout_ms, or longer than 1 s while the run "
        "was rebuilt, or was stopped)",
        ring_sequence, stage_));
}

// An incarnation may claim that the stream ends before frame n. This claim is valid while the incarnation's
// job for frame n is open. If the claim is not accepted, the incarnation ends, and this makes the claim void.
// So an incarnation that has made such a claim never writes frame n.
void port_seat::end() {
    require_owner();
    const device::kept_thread kept(may_use_gpu());
    const u64 until = now_ns() + patience_ns();
    const auto left = [until] { return now_ns() < until ? until - now_ns() : 0; };
    while (!ended_) {
        if (!has_frame_ && !next(left())) {
            if (!ended_) throw_wait_timeout();
            return;
        }
        const port_session::wait_result result = session_->end_stream(until);
        const u64 ring_sequence = session_->job().ring_sequence;
        has_frame_ = false;
        session_.reset();
        ended_ = result == port_session::wait_result::closed;
        if (result == port_session::wait_result::nothing)
            throw nothing_new(
                fmt::format("port \"{}\" ends its stream before frame {}, and no supervisor has confirmed it "
                            "in {:.3g} s: {}",
                            stage_, ring_sequence, options_.patience_s, to_->stall_reason()));
    }
}

void port_seat::drop() noexcept {
    if (owner_.is_this() && has_frame_ && session_) session_->rest();
}

port_session& port_seat::session() const {
    require_owner();
    if (has_frame_ && session_) return *session_;
    throw config_error(
        fmt::format("port \"{}\" has no current frame: a frame ends with its commit()", stage_));
}

u64 port_seat::patience_ns() const noexcept { return nanoseconds_of(options_.patience_s); }

void port_seat::throw_wait_timeout() const {
    throw nothing_new(fmt::format("no {} for port \"{}\" in {:.3g} s: {}", writes_ ? "room" : "frame", stage_,
                                  options_.patience_s, to_->stall_reason()));
}

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
// restart it. So poll() treats the run as ended only after the time for which opening a run waits (wait_s).
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
    if (gpu_memory && id.kind == device::device_kind::cpu) {  // only the GPU that has the memory can read it,
                                                              // so the frames are read on this GPU
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
