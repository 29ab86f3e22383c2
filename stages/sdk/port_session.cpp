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
#include "core/io.hpp"
#include "core/log.hpp"
#include "core/resource_limit.hpp"
#include "frame/metadata.hpp"
#include "ring/latest.hpp"
#include "ring/own_pages.hpp"
#include "run/directory.hpp"
#include "session/accounts.hpp"
#include "shm/doorbell.hpp"
#include "shm/process_id.hpp"

namespace carousel {
namespace {

constexpr u64 answer_patience_ns = 10 * ns_per_s;
constexpr u64 beat_ns = 50 * ns_per_ms;
constexpr std::size_t most_beyond = 2 * std::size_t{shm::max_slots};
// The end of the stream as words show it is certain after `end_patience_ns`, in which damaged words would be
// repaired, if the ledger agrees; after `rebuild_patience_ns`, in which a rebuild would have begun, in any
// case.
constexpr u64 end_patience_ns = 100 * ns_per_ms, rebuild_patience_ns = 3 * ns_per_s,
              end_nap_ns = 10 * ns_per_ms;
shm::unique_fd own_pidfd() {
    return shm::unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
}

}  // namespace

port_session::port_session(const std::string& folder, const std::string& stage, bool writes,
                           const device_source& device)
    : running_(4 * beat_ns) {
    try {
        join(folder, stage, writes, device);
    } catch (...) {
        disconnect();
        throw;
    }
}

void port_session::join(const std::string& folder, const std::string& stage, bool writes,
                        const device_source& device) {
    const session::attached attached = introduce(folder, stage, writes);
    const run::attach_message& a = attached.message;
    incarnation_ = a.incarnation;
    if (a.control < 0 || static_cast<std::size_t>(a.control) >= attached.fds.size())
        throw shm_error(
            "the supervisor sent no control block: check that both programs have the same version");
    block_ = std::make_unique<shm::segment>(
        shm::segment::attach_by(attached.fds[static_cast<std::size_t>(a.control)].get()));
    take_lock(folder);
    crash_here(crash_point::segment_mapped);
    shm::control_block& c = block_->block();
    if (ring::claim(c, incarnation_, {a.pid, 0}) != ring::claim_result::ok)
        throw session::seat_taken(fmt::format("port {} was given to another incarnation meanwhile", stage));
    crash_here(crash_point::entry_claimed);
    // Uses only page protection, because the program's threads already exist, and rights of a protection key
    // are per thread.
    shm::guard_pages(c, ring::pages_of(c, incarnation_, shm::none).pages());
    context_ = &device(a.device);
    entry().device = static_cast<u32>(context_->kind());
    queue_ = context_->make_queue();
    event_ = context_->make_event(&event_word_);
    const shm::stage_block& s = c.stage[std::min(c.seat[incarnation_.seat].stage, shm::max_stages - 1)];
    const auto map = [&](u32 link, device::access wanted) {
        return session::map_link(c, session::block_of_link(attached.links, link), *context_, wanted);
    };
    for (u32 i = 0; i < std::min(s.inputs, shm::max_inputs); ++i)
        inputs_.push_back(map(s.input_link[i], device::access::read));
    if (s.outputs > 0) outputs_.push_back(map(s.output_link[0], device::access::write));
    for (const run::attach_message::input& i : a.inputs) {
        input_formats_.push_back(ring::frame_format::from_json(i.format.dump()));
        input_names_.push_back(i.stage);
    }
    if (!a.outputs.empty()) output_format_ = ring::frame_format::from_json(a.outputs.front().format.dump());
    if (input_formats_.size() != inputs_.size())
        throw shm_error("the supervisor's answer names other inputs than the control block");
    publish_guard();
    worker_ = std::make_unique<ring::worker>(c, incarnation_.seat, incarnation_.entry, incarnation_.epoch);
    status_ = std::make_unique<session::status_words>(c, *worker_, *context_, inputs_, outputs_, 1);
    if (!writes) {
        ledger_path_ = telemetry::ledger_path(folder, stage);
        ledger_ = std::make_unique<telemetry::ledger_writer>(ledger_path_);
        find_delivered(c.first_ring_sequence);
    }
    stop_.reset(shm::unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
    crash_here(crash_point::prepared);
    if (!ring::go_live(c, incarnation_, a.pid))
        throw session::seat_taken(fmt::format("port {} was given to another incarnation meanwhile", stage));
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all,
                    &before);  // signals are blocked here, so that the program's threads handle them and not
                               // the heartbeat thread
    try {
        heartbeat_thread_ = std::thread([this] { run_heartbeat(); });
    } catch (const std::system_error& e) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw out_of_resources(fmt::format("port {}: its thread could not be started: {}", stage,
                                           no_thread_text(e.code().value())));
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    shm::send_message(socket_.get(), write_message(run::ready_message{}).dump());
}

session::attached port_session::introduce(const std::string& folder, const std::string& stage, bool writes) {
    const std::string path = run::control_socket(folder);
    shm::unique_fd socket = shm::connect_to(path, answer_patience_ns);
    if (!socket) throw shm_error(fmt::format("no supervisor at {}: {}", path, errno_text(errno)));
    session::move_above_driver(socket);
    socket_.reset(std::move(socket));
    const shm::unique_fd pidfd = own_pidfd();
    run::hello_message hello{stage, {}};
    hello.port = true;
    hello.writes = writes;
    return session::introduce(socket_.get(), std::move(hello), answer_patience_ns,
                              pidfd ? std::vector<int>{pidfd.get()} : std::vector<int>{});
}

// Done before the claim, so that a process that finds a port's claimed entry also finds the port's lock.
void port_session::take_lock(const std::string& folder) {
    lock_path_ = run::port_lock(folder, incarnation_.seat, incarnation_.epoch);
    shm::unique_fd lock(::open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (lock) {
        session::move_above_driver(lock);
        lock_.reset(std::move(lock));
    }
    if (!lock_ || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
        throw shm_error(fmt::format(
            "locking {}: {}: a port's program must be able to write to the run's runtime directory",
            lock_path_, errno_text(errno)));
}

// Publishes the guards in the same way as a stage's runner. A port writes no canaries, so only the gaps
// after the slots guard a port's output; without gaps, the output is not guarded.
void port_session::publish_guard() {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (!inputs_[i].memory->read_only())
            log::warning(
                "the port's input {} is unguarded: its memory can't be mapped read-only, so a wild "
                "write of "
                "this program can corrupt other stages",
                input_names_[i]);
    entry().guard = session::guards_of(inputs_, outputs_) | shm::memory_guard::block_pages;
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
    outputs_.clear();
    status_.reset();
    worker_.reset();
    block_.reset();
    if (lock_) ::unlink(lock_path_.c_str());
    lock_.reset();
    crash_here(crash_point::leaving);  // at this point no memory of the run is mapped any more, and the
                                       // supervisor has not been notified yet
    if (socket_) shm::send_message(socket_.get(), write_message(run::left_message{}).dump());
}

// Damaged words may have let the port pass frames, which are not in its ledger; those after them are.
void port_session::find_delivered(u64 first) {
    first_ = first;
    const auto ledger = telemetry::ledger_reader::open(ledger_path_);
    const u64 below = ledger ? ledger->first_undelivered(first) : first;
    has_claim_ = below != telemetry::no_frame;
    if (!has_claim_) return;
    delivered_below_ = below;
    if (!ledger) return;
    const u64 size = std::max(below, ledger->size());
    const std::vector<telemetry::ledger_record> records = ledger->read(below, size - below);
    for (u64 n = 0; n < records.size(); ++n)
        if (telemetry::is_marked(records[n])) delivered_beyond_.push_back(below + n);
}

// A word that is damaged while the run continues may show a frame once more that the port has committed.
void port_session::note_delivered() {
    const u64 n = job_.ring_sequence;
    if (ledger_path_.empty() || is_delivered()) return;
    if (n == delivered_below_ || !has_claim_) {
        delivered_below_ = n + 1;
        return;
    }
    std::vector<u64>& beyond = delivered_beyond_;
    beyond.insert(std::upper_bound(beyond.begin(), beyond.end(), n), n);
    if (beyond.size() <= most_beyond) return;
    delivered_below_ = beyond.front() + 1;  // no ring holds a frame that is so old
    beyond.erase(beyond.begin());
}

/// True if no frame below END is left for this port, by its ledger; also for a port without a claim on
/// frames.
bool port_session::has_all_frames() const {
    if (ledger_path_.empty()) return true;
    const auto ledger = telemetry::ledger_reader::open(ledger_path_);
    const u64 lacking = ledger ? ledger->first_undelivered(first_) : first_;
    return lacking == telemetry::no_frame || lacking >= ring::load(block_->block().end);
}

// A program that has seen the end does not come back, so damaged words must not be taken for the end.
bool port_session::is_end_certain(u64 now) {
    if (closed_since_ns_ == 0) closed_since_ns_ = now;
    const u64 shown_ns = now - std::min(now, closed_since_ns_);
    return shown_ns >= rebuild_patience_ns || (shown_ns >= end_patience_ns && has_all_frames());
}

// A source's program may be busy elsewhere when the run stops. While this thread holds the mutex, begin()
// can't lease a frame. So this thread can acknowledge for the program that the program begins no further
// frame, and END can be computed.
void port_session::run_heartbeat() {
    for (;;) {
        pollfd p[2] = {{stop_.get(), POLLIN, 0}, {lost_ ? -1 : socket_.get(), POLLIN | POLLRDHUP, 0}};
        (void)poll_until(p, 2, now_ns() + beat_ns);
        if ((p[0].revents & POLLIN) != 0) return;
        if ((p[1].revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0) {
            lost_.store(true, std::memory_order_release);
            shm::ring(worker_->stage().doorbell);  // the program may be waiting for a frame
        } else if ((p[1].revents & POLLIN) != 0) {
            shm::message m;  // a message of a later version is ignored
            (void)shm::receive_message(socket_.get(), m);
        }
        (void)running_.consume_gap(now_ns());
        if (worker_->revoked()) continue;
        session::beat(entry(), worker_->stage().counters);
        if (const std::unique_lock alone(begins_, std::try_to_lock); alone && !outputs_.empty())
            (void)worker_->await_due();
    }
}

port_session::wait_result port_session::begin(u64 until_ns) {
    shm::stage_block& s = worker_->stage();
    running_time running(2 * shm::max_sleep_ns);
    for (;;) {
        if (passes_) {  // passes_ is also true if an earlier call could not write the record of the tombstone
                        // frame
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
        if (o != ring::outcome::closed)
            closed_since_ns_ = 0;
        else if (is_end_certain(now_ns()))
            return wait_result::closed;
        if (o == ring::outcome::ok) {
            committed_ = false;
            telemetry::begin_busy(entry(), now_ns());
            touch();
            crash_here(crash_point::clock_started);
            check_status(device::status_state::writing);
            if (!job_.is_tombstone() && !is_delivered()) return wait_result::frame;
            // For a frame that was abandoned upstream there is no content to read, but its place in the
            // sequence is recorded. A frame that the port has committed before is completed without a record.
            if (!is_delivered()) s.counters.tombstones.fetch_add(1, std::memory_order_relaxed);
            passes_ = true;
            continue;
        }
        const u64 now = now_ns();
        until_ns = std::max(until_ns, until_ns + running.consume_gap(now));
        if (now >= until_ns) return wait_result::nothing;
        for (u32 k = 0; k < worker_->outputs(); ++k) {
            worker_->output(k).sweep();
            (void)ring::revoke_stale_leases(block_->block(), worker_->output(k).index(), now, [&](u64 since) {
                return std::max(since, running_.resumed_ns(now));
            });
        }
        shm::wait(s.doorbell, seen,
                  std::min(closed_since_ns_ == 0 ? shm::max_sleep_ns : end_nap_ns, until_ns - now));
        (worker_->outputs() > 0 ? s.counters.wait_output_ns : s.counters.wait_input_ns)
            .fetch_add(now_ns() - now, std::memory_order_relaxed);
    }
}

void port_session::touch() noexcept {
    entry().processing_since_ns.store(now_ns(), std::memory_order_release);
}
void port_session::rest() noexcept { entry().processing_since_ns.store(0, std::memory_order_release); }

// On the CPU the program continues at once, so the queue is drained first.
void port_session::check_status(device::status_state state) {
    const device::status_step step = status_->step(job_, 0, state);
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

// The event is complete before the job word becomes SUBMITTED. No other process commits for a port
// (owner_commits), so only this process changes the word from SUBMITTED to COMMITTED. The steps are, in this
// order: the record in the ledger, the commit, the mark in the ledger, and the remaining steps. If the mark
// can't be written (a full disk) the frame stays committed and the next call resumes with the mark. If the
// function is not called again, the supervisor writes the mark from the word
// (ledger_writer::mark_committed_by_supervisor).
// After the commit, a revocation refuses nothing: R2 completes the frame. Only ring::abort_all() undoes a
// commit. Its job words are the only ones with ABORTED and epoch 0.
bool port_session::finish(const telemetry::frame_hash& hash) {
    const bool is_tombstone = job_.is_tombstone();
    if (!committed_) {
        if (ledger_ && !is_delivered()) ledger_->record(job_.ring_sequence, hash, is_tombstone, committer());
        crash_here(crash_point::host_work_done);
        if (!worker_->submit(job_)) return false;
        if (!worker_->commit(job_)) return false;
        committed_ = true;
    }
    if (ledger_ && !is_delivered())
        ledger_->mark_committed(job_.ring_sequence, hash, is_tombstone, committer());
    note_delivered();
    session::count_commit(*worker_, entry(), job_, now_ns());
    status_->report(job_, 0);  // called here, while the inputs are still leased
    if (worker_->complete(job_)) return true;
    const ring::job_word w = ring::job_word::of(ring::load(block_->block().job[job_.index]));
    return w.state != ring::job_state::aborted || w.epoch != 0;
}

std::byte* port_session::output_slot() const { return outputs_.front().slot(job_.output[0].index); }

// One incarnation of a port: its frame's metadata, capture time and used extents, and the end of a writer's
// stream.

const std::byte* port_session::input_slot(std::size_t i) const {
    if (i >= inputs_.size())
        throw config_error(fmt::format("a port with {} inputs has no input {}", inputs_.size(), i));
    return inputs_[i].slot(job_.input[i].index);
}

const shm::used_extents* port_session::input_used(std::size_t i) const {
    const shm::used_extents& used = worker_->input(static_cast<u32>(i)).header(job_.input[i].index).used;
    return used.planes != 0 ? &used : nullptr;
}

std::span<const std::byte> port_session::read_metadata() {
    const auto of = [this](u32 i) {
        return ring::metadata_of(worker_->input(i).header(job_.input[i].index));
    };
    if (job_.inputs == 1) return of(0);
    u32 bytes = 0;
    for (u32 i = 0; i < job_.inputs; ++i) (void)ring::merge_metadata(joined_, bytes, of(i));
    return std::span(joined_).first(bytes);
}

std::span<const std::byte> port_session::parameter_bytes() const noexcept {
    return {job_.parameters, std::min(block_->block().parameters.bytes, shm::max_parameter_bytes)};
}

// The header belongs to this process from FILL to SUBMITTED, as in a stage's runner: after a revocation the
// slot is quarantined, and no process reads it.
shm::frame_header& port_session::header() const {
    return worker_->output(0).header_to_write(job_.output[0].index);
}

void port_session::reissue_frame() noexcept {
    shm::frame_header& h = header();
    h.metadata_bytes = 0;
    h.used.planes = 0;
    job_.set_capture_ns(0);
    touch();
}

// Performs E1 and E3 of ring/PROTOCOL.md, in the same way as a stage's runner. The frame's clock is stopped
// while this function waits for the supervisor's next poll, or for a supervisor. If this process is killed
// before that poll, the claim is void and the next program writes that frame number. After the poll END is
// known, and no program gets that number.
port_session::wait_result port_session::end_stream(u64 until_ns) {
    if ((worker_->stage().flags & shm::stage_flag::ends) == 0)
        throw config_error(
            fmt::format("port \"{0}\" ends its stream, but the pipeline file does not permit it: set `ends = "
                        "true` in the table of {0}",
                        worker_->stage().name));
    rest();
    queue_->drain();
    running_time running(2 * shm::max_sleep_ns);
    for (;;) {
        const u32 seen = shm::ticket(worker_->stage().doorbell);
        if (lost_.load(std::memory_order_acquire)) return wait_result::lost;
        const ring::outcome result = worker_->end_stream(job_);
        if (result == ring::outcome::revoked) return wait_result::lost;
        if (result == ring::outcome::ok) break;
        const u64 now = now_ns();
        until_ns = std::max(until_ns, until_ns + running.consume_gap(now));
        if (now >= until_ns) return wait_result::nothing;
        shm::wait(worker_->stage().doorbell, seen, std::min(shm::max_sleep_ns, until_ns - now));
    }
    crash_here(crash_point::end_known);
    return worker_->give_back(job_) ? wait_result::closed : wait_result::lost;
}

}  // namespace carousel
