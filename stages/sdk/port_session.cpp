#include "stages/sdk/port_session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "control/memory_message.hpp"
#include "control/stage_message.hpp"
#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "core/poll_until.hpp"
#include "core/resource_limit.hpp"
#include "core/whole_io.hpp"
#include "ring/latest.hpp"
#include "ring/own_pages.hpp"
#include "run/directory.hpp"
#include "shm/doorbell.hpp"
#include "shm/process_id.hpp"
#include "telemetry/busy_time.hpp"
#include "telemetry/histogram.hpp"

namespace carousel {
namespace {

using nlohmann::json;

constexpr u64 answer_patience_ns = 10 * ns_per_s;
constexpr u64 beat_ns = 50 * ns_per_ms;
constexpr int first_high_fd = 900;

/// Moves the descriptor above the driver's: at exit files are closed in the order of their numbers, and
/// closing a GPU's takes a while.
shm::unique_fd moved_up(shm::unique_fd fd) {
    if (const int high = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, first_high_fd); high >= 0) fd.reset(high);
    return fd;
}

shm::unique_fd own_pidfd() {
    return shm::unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
}

json parsed(const std::string& text) {
    json j = parse_json_or_discard(text, json_channel::message);
    if (j.is_object()) return j;
    throw shm_error("the supervisor's answer can't be read: check that both programs have the same version");
}

}  // namespace

port_session::port_session(const std::string& folder, const std::string& stage, bool writes,
                           const device_source& device) {
    try {
        join(folder, stage, writes, device);
    } catch (...) {
        disconnect();
        throw;
    }
}

void port_session::join(const std::string& folder, const std::string& stage, bool writes,
                        const device_source& device) {
    std::vector<shm::unique_fd> fds;
    const run::attach_message a = send_hello(folder, stage, writes, fds);
    incarnation_ = a.incarnation;
    if (a.control < 0 || static_cast<std::size_t>(a.control) >= fds.size())
        throw shm_error(
            "the supervisor sent no control block: check that both programs have the same version");
    block_ = std::make_unique<shm::segment>(
        shm::segment::attach_by(fds[static_cast<std::size_t>(a.control)].get()));
    take_lock(folder);
    crash_here(crash_point::segment_mapped);
    shm::control_block& c = block_->block();
    if (ring::claim(c, incarnation_, {a.pid, 0}) != ring::claim_result::ok)
        throw port_taken(fmt::format("port {} was given to another incarnation meanwhile", stage));
    crash_here(crash_point::entry_claimed);
    // Page protection only: the program's threads already exist, and rights of a protection key are per
    // thread.
    shm::guard_pages(c, ring::pages_of(c, incarnation_, shm::none).pages());
    context_ = &device(a.device);
    entry().device = static_cast<u32>(context_->kind());
    queue_ = context_->make_queue();
    event_ = context_->make_event(&event_word_);
    torn_ = context_->allocate_host(sizeof(u32));
    *reinterpret_cast<u32*>(torn_->host_data()) = 0;
    const shm::stage_block& s = c.stage[std::min(c.seat[incarnation_.seat].stage, shm::max_stages - 1)];
    for (u32 i = 0; i < std::min(s.inputs, shm::max_inputs); ++i)
        inputs_.push_back(map_link(a, s.input_link[i], device::access::read, fds));
    if (s.outputs > 0) output_ = map_link(a, s.output_link[0], device::access::write, fds);
    for (const run::attach_message::input& i : a.inputs) {
        input_formats_.push_back(ring::frame_format::from_json(i.format.dump()));
        input_names_.push_back(i.stage);
    }
    if (!a.outputs.empty()) output_format_ = ring::frame_format::from_json(a.outputs.front().format.dump());
    if (input_formats_.size() != inputs_.size())
        throw shm_error("the supervisor's answer names other inputs than the control block");
    publish_guard();
    worker_ = std::make_unique<ring::worker>(c, incarnation_.seat, incarnation_.entry, incarnation_.epoch);
    if (!writes) ledger_ = std::make_unique<telemetry::ledger_writer>(telemetry::ledger_path(folder, stage));
    stop_.reset(shm::unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
    crash_here(crash_point::prepared);
    if (!ring::go_live(c, incarnation_, a.pid))
        throw port_taken(fmt::format("port {} was given to another incarnation meanwhile", stage));
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all,
                    &before);  // signals are for the program's threads, not for the heartbeat thread
    try {
        heartbeat_thread_ = std::thread([this] { run_heartbeat(); });
    } catch (const std::system_error& e) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw out_of_resources(fmt::format("port {}: its thread could not be started: {}", stage,
                                           no_thread_text(e.code().value())));
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    shm::send_message(socket_.get(), run::ready_message().dump());
}

run::attach_message port_session::send_hello(const std::string& folder, const std::string& stage, bool writes,
                                             std::vector<shm::unique_fd>& fds) {
    const std::string path = run::control_socket(folder);
    shm::unique_fd socket = shm::connect_to(path, answer_patience_ns);
    if (!socket) throw shm_error(fmt::format("no supervisor at {}: {}", path, errno_text(errno)));
    socket_.reset(moved_up(std::move(socket)));
    run::hello_message hello{stage, {}, ::getpid()};
    hello.clock = own_clock();
    hello.port = true;
    hello.writes = writes;
    hello.start_time = shm::this_process().start_time;
    const shm::unique_fd pidfd = own_pidfd();
    if (!shm::send_message(socket_.get(), run::to_json(hello).dump(),
                           pidfd ? std::vector<int>{pidfd.get()} : std::vector<int>{}))
        throw shm_error(fmt::format("asking the supervisor for the port {}: {}", stage, errno_text(errno)));
    crash_here(crash_point::introduced);
    shm::message m;
    if (shm::receive_message(socket_.get(), m, answer_patience_ns) != shm::receive_status::ok)
        throw shm_error(
            fmt::format("the supervisor at {} does not answer about the port {}: check whether it is stopped "
                        "(`carousel ps`)",
                        path, stage));
    fds = std::move(m.fds);
    const json answer = parsed(m.text);
    try {
        if (answer.contains("refused") && answer.value("again", false))
            throw port_taken(answer.at("refused").get<std::string>());
        return run::read_attach(answer);
    } catch (const json::exception& e) {
        throw shm_error(fmt::format(
            "the supervisor's answer can't be read: {}: check that both programs have the same version",
            e.what()));
    }
}

// Before the claim: a process that finds a claimed entry of a port also finds its lock.
void port_session::take_lock(const std::string& folder) {
    lock_path_ = run::port_lock(folder, incarnation_.seat, incarnation_.epoch);
    shm::unique_fd lock(::open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (lock) lock_.reset(moved_up(std::move(lock)));
    if (!lock_ || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
        throw shm_error(fmt::format(
            "locking {}: {}: a port's program must be able to write to the run's runtime directory",
            lock_path_, errno_text(errno)));
}

port_session::ring_map port_session::map_link(const run::attach_message& a, u32 link, device::access wanted,
                                              const std::vector<shm::unique_fd>& fds) {
    const shm::control_block& c = block_->block();
    for (const json& j : a.links) {
        if (j.value("link", shm::none) != link || link >= shm::max_links) continue;
        const device::memory_handle memory = run::read_memory(j, fds);
        ring_map m;
        m.slot_bytes = c.link[link].slot_bytes;
        const u32 slots = c.link[link].slots;
        if (slots == 0 || slots > shm::max_slots || !memory.holds(slots, m.slot_bytes))
            throw shm_error(
                fmt::format("link {}: {} slots of {} bytes do not fit into its memory of {}: the control "
                            "block is damaged, restart the run",
                            c.link[link].name, slots, m.slot_bytes, memory.bytes));
        m.memory = context_->map(memory, wanted);
        return m;
    }
    throw shm_error(fmt::format("the supervisor sent no memory for link {}", link));
}

// Publishes the guards as a stage's runner does. A port writes no canary: its output is guarded by gaps or
// not at all.
void port_session::publish_guard() {
    u32 guard = shm::memory_guard::mapped | shm::memory_guard::block_pages;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (inputs_[i].memory->read_only()) continue;
        guard |= shm::memory_guard::inputs_writable;
        log::warning(
            "the port's input {} is unguarded: its memory can't be mapped read-only, so that a wild write of "
            "this program can corrupt other stages",
            input_names_[i]);
    }
    if (output_.memory && output_.memory->has_gaps()) guard |= shm::memory_guard::output_gaps;
    entry().guard = guard;
}

port_session::~port_session() {
    if (heartbeat_thread_.joinable()) {
        const u64 one = 1;
        (void)write_whole(stop_.get(), &one, sizeof one);
        heartbeat_thread_.join();
    }
    disconnect();
}

void port_session::disconnect() noexcept {
    try {
        if (queue_) queue_->drain();
    } catch (const std::exception& e) {
        log::warning("a port's work on its device has failed: {}", e.what());
    }
    event_.reset();
    queue_.reset();
    inputs_.clear();
    output_ = {};
    torn_.reset();
    worker_.reset();
    block_.reset();
    if (lock_) ::unlink(lock_path_.c_str());
    lock_.reset();
    crash_here(
        crash_point::leaving);  // nothing of the run is mapped, and the supervisor has not been notified
    if (socket_) shm::send_message(socket_.get(), run::left_message().dump());
}

// A source's program may be busy elsewhere when the run is to stop: no frame is leased while this thread
// holds the mutex, so it can store on the program's behalf that no lease is active.
void port_session::run_heartbeat() {
    for (;;) {
        pollfd p[2] = {{stop_.get(), POLLIN, 0}, {lost_ ? -1 : socket_.get(), POLLIN | POLLRDHUP, 0}};
        (void)poll_until(p, 2, now_ns() + beat_ns);
        if ((p[0].revents & POLLIN) != 0) return;
        if ((p[1].revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0) {
            lost_.store(true, std::memory_order_release);
            shm::ring(worker_->stage().doorbell);  // the program may be waiting for a frame
        } else if ((p[1].revents & POLLIN) != 0) {
            shm::message m;  // from a later version: ignored
            (void)shm::receive_message(socket_.get(), m);
        }
        if (worker_->revoked()) continue;
        const u64 now = now_ns();
        entry().heartbeat_ns.store(now, std::memory_order_release);
        entry().cpu_ns.store(process_cpu_ns(), std::memory_order_relaxed);
        telemetry::count_busy(entry(), worker_->stage().counters, now, false);
        if (const std::unique_lock alone(begins_, std::try_to_lock); alone && output_.memory)
            (void)worker_->await_due();
    }
}

port_session::wait_result port_session::begin(u64 until_ns) {
    shm::stage_block& s = worker_->stage();
    for (;;) {
        if (passes_) {  // again, after its record could not be written
            if (!commit(std::nullopt)) return wait_result::lost;
            passes_ = false;
        }
        const u32 seen = shm::ticket(s.doorbell);
        if (lost_.load(std::memory_order_acquire)) return wait_result::lost;
        ring::outcome o;
        {
            const std::lock_guard alone(begins_);
            o = worker_->peek(0);
            if (o == ring::outcome::ok) o = worker_->begin(job_, 0);
        }
        if (o == ring::outcome::revoked || worker_->revoked()) return wait_result::lost;
        if (o == ring::outcome::closed) return wait_result::closed;
        if (o == ring::outcome::ok) {
            committed_ = false;
            telemetry::begin_busy(entry(), now_ns());
            touch();
            crash_here(crash_point::clock_started);
            check_status(device::status_state::writing);
            if (!job_.is_tombstone()) return wait_result::frame;
            // Abandoned upstream: there is no content to read, and its place in the sequence is recorded.
            s.counters.tombstones.fetch_add(1, std::memory_order_relaxed);
            passes_ = true;
            continue;
        }
        const u64 now = now_ns();
        if (now >= until_ns) return wait_result::nothing;
        for (u32 k = 0; k < worker_->outputs(); ++k) {
            worker_->output(k).sweep();
            (void)ring::revoke_stale_leases(block_->block(), worker_->output(k).index(), now);
        }
        shm::wait(s.doorbell, seen, std::min(shm::max_sleep_ns, until_ns - now));
        (worker_->outputs() > 0 ? s.counters.wait_output_ns : s.counters.wait_input_ns)
            .fetch_add(now_ns() - now, std::memory_order_relaxed);
    }
}

void port_session::touch() noexcept {
    entry().processing_since_ns.store(now_ns(), std::memory_order_release);
}
void port_session::rest() noexcept { entry().processing_since_ns.store(0, std::memory_order_release); }

// The inputs' status words must be as their producers left them, the output's is set for this frame, as in a
// stage's runner. On the CPU the program continues at once, so the queue is drained first.
void port_session::check_status(device::status_state state) {
    device::status_step step;
    step.torn = reinterpret_cast<u32*>(torn_->data());
    for (u32 i = 0; i < job_.inputs && !job_.is_tombstone(); ++i) {
        const shm::frame_header& h = worker_->input(i).header(job_.input[i].index);
        step.expect(reinterpret_cast<device::status_word*>(inputs_[i].slot(job_.input[i].index)),
                    {job_.ring_sequence, h.epoch, static_cast<u32>(device::status_state::ready)});
    }
    if (output_.memory) {
        step.store_at(reinterpret_cast<device::status_word*>(output_.slot(job_.output[0].index)));
        step.value = {job_.ring_sequence, incarnation_.epoch, static_cast<u32>(state)};
    }
    if (step.count > 0 || step.writes > 0) queue_->status(step);
    if (context_->kind() == device::device_kind::cpu) queue_->drain();
}

bool port_session::commit(const telemetry::frame_hash& hash) {
    if (!committed_) {
        check_status(device::status_state::ready);
        event_->record(*queue_, worker_->tag(job_));
        event_->wait();
        crash_here(crash_point::work_complete);
    }
    const bool owned = finish(hash);
    rest();
    telemetry::count_busy(entry(), worker_->stage().counters, now_ns(), true);
    return owned;
}

// The event is complete before the word becomes SUBMITTED; no other process commits for a port
// (owner_commits), so only this process acts between the two words. The order at the ledger: record, commit,
// mark, and only then the rest. If the mark can't be written (a full disk) the frame stays committed and the
// next call resumes with the mark. If there is no next call, the supervisor writes the mark from the word
// (ledger_writer::mark_committed_by_supervisor).
bool port_session::finish(const telemetry::frame_hash& hash) {
    const bool is_tombstone = job_.is_tombstone();
    if (!committed_) {
        if (ledger_) ledger_->record(job_.ring_sequence, hash, is_tombstone, committer());
        crash_here(crash_point::host_work_done);
        if (!worker_->submit(job_)) return false;
        if (!worker_->commit(job_)) return false;
        committed_ = true;
    }
    if (ledger_) ledger_->mark_committed(job_.ring_sequence, hash, is_tombstone, committer());
    account();
    return worker_->complete(job_);
}

void port_session::account() {
    shm::stage_counters& n = worker_->stage().counters;
    const u64 now = now_ns();
    n.frames.fetch_add(1, std::memory_order_relaxed);
    if (!job_.is_tombstone() && entry().commits.fetch_add(1, std::memory_order_relaxed) == 0)
        entry().first_commit_ns.store(now, std::memory_order_relaxed);
    telemetry::raise_to(entry().last_commit_ns, now);
    telemetry::add_sample(n.latency, now - job_.claimed_ns);
    telemetry::raise_to(n.latency_max_ns, now - job_.claimed_ns);
    if (!output_.memory) telemetry::count_from_capture(n, job_, now);
    if (!output_.memory && job_.born_ns != 0 && job_.born_ns < now) {
        telemetry::add_sample(n.end_to_end, now - job_.born_ns);
        telemetry::raise_to(n.end_to_end_max_ns, now - job_.born_ns);
    }
    log_torn_reads();
}

// While the inputs are still leased, so that no process can refill their slots.
void port_session::log_torn_reads() {
    const u32 seen = *reinterpret_cast<volatile u32*>(torn_->host_data()), words = seen - torn_seen_;
    if (words == 0) return;
    torn_seen_ = seen;
    const shm::control_block& c = block_->block();
    worker_->stage().counters.torn.fetch_add(words, std::memory_order_relaxed);
    std::vector<torn_input> of;
    for (u32 i = 0; i < std::min<std::size_t>(job_.inputs, inputs_.size()); ++i) {
        const u32 slot = job_.input[i].index;
        const shm::link_block& ring = c.link[std::min(worker_->stage().input_link[i], shm::max_links - 1)];
        const device::status_word expected{job_.ring_sequence, worker_->input(i).header(slot).epoch,
                                           static_cast<u32>(device::status_state::ready)};
        of.push_back({ring.name, c.stage[std::min(ring.stage, shm::max_stages - 1)].name,
                      differs_now(*inputs_[i].memory,
                                  reinterpret_cast<device::status_word*>(inputs_[i].slot(slot)), expected)});
    }
    torn_lines_.report(job_.ring_sequence, words, of);
}

std::byte* port_session::output_slot() const { return output_.slot(job_.output[0].index); }

}  // namespace carousel
