#include "simulated_run.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/json.hpp"
#include "ledger/ledger.hpp"
#include "os/console.hpp"
#include "ring/link.hpp"
#include "run/directory.hpp"
#include "runs/run_lock.hpp"
#include "shm/runtime_folder.hpp"
#include "simulated_plan.hpp"
#include "simulated_stage.hpp"
#include "supervisor/engine/engine.hpp"
#include "tests/support/scratch_folder.hpp"

namespace carousel::test {
namespace {

using namespace carousel::supervisor;

constexpr const char* fault_names[simulated_faults] = {
    "kill",    "crash", "exit",         "hang",      "stop",           "pause",
    "restart", "down",  "kill command", "full disk", "no process",     "stop supervisor",
    "rebuild", "fail",  "leave",        "lose",      "kill supervisor"};

/// Time within which a frame advances while nothing is withheld: a frame that hangs is found after
/// frame_timeout_ms, a stage that has delivered nothing is restarted after up to 5 s, and a start takes 0.2
/// s.
constexpr u64 longest_quiet_ns = 9 * ns_per_s;
constexpr u64 longest_end_ns = 60 * ns_per_s, longest_run_ns = 80 * ns_per_s;

class simulated_history {
public:
    explicit simulated_history(const simulated_run_options& o) : options_(o), machine_(o.seed) {
        setup_.directory = files_.path.string();
        run_.on = &machine_;
        run_.folder = setup_.directory;
        run_.run_id = "sim-" + std::to_string(::getpid()) + "-" + std::to_string(o.seed);
        struct stat s {};
        (void)::stat(setup_.directory.c_str(), &s);
        machine_.disk = s.st_dev;
        result_.plan = choose_plan(setup_, run_, machine_);
        machine_.note("seed " + std::to_string(o.seed) + ": " + result_.plan);
        // longer than a start, so that a successor works while its predecessor's device may still write
        if (const u64 kind = machine_.below(4); kind != 0)
            machine_.teardown_ns[1] = (kind == 1 ? 2 : 800) * ns_per_ms;
        run_.port_left = [this](const std::string& stage) {
            if (setup_.stages[stage_number(stage)].spec.skips()) run_.is_absent(stage);
        };
        run_.port_ended = [this](const std::string& stage, bool for_good) {
            if (for_good) return;
            run_.port_left(stage);
            machine_.after(machine_.below(run_.over ? 30 * ns_per_ms : 800 * ns_per_ms),
                           [this, stage] { open_port(stage); });
        };
        const bool ports = std::any_of(setup_.stages.begin(), setup_.stages.end(),
                                       [](const stage_setup& st) { return st.spec.is_port(); });
        // What is received without release = "durable" is lost with the last process.
        takes_over_ = machine_.below(3) == 0 && !ports && !(run_.link && !run_.link->is_durable());
        machine_.supervisors_may_die = takes_over_;
        machine_.died = [this](fiber& f, const std::string&) { supervisor_died(f); };
        machine_.load = [this](simulated_process& p, const std::vector<std::string>& environment) {
            return std::make_unique<simulated_stage>(run_, p, environment);
        };
    }

    simulated_run_result run() {
        sigset_t signals;  // the engine blocks signals that end this test
        ::pthread_sigmask(SIG_SETMASK, nullptr, &signals);
        run_all();
        ::pthread_sigmask(SIG_SETMASK, &signals, nullptr);
        return result_;
    }

private:
    void run_all() {
        make_log_folder(setup_.directory);
        printed_.reset(::memfd_create("console", MFD_CLOEXEC));
        before_ = open_descriptors();
        start_supervisor(true);
        moved_ns_ = machine_.now();
        faults_end_ns_ = machine_.now() + (1 + machine_.below(5)) * ns_per_s;
        machine_.after(50 * ns_per_ms + machine_.below(200 * ns_per_ms), [this] { next_fault(); });
        machine_.after(50 * ns_per_ms, [this] { watch(); });
        for (const stage_setup& st : setup_.stages)
            if (st.spec.is_port())
                machine_.after(machine_.below(ns_per_s), [this, name = st.spec.name] { open_port(name); });
        machine_.at(faults_end_ns_, [this] { give_back_everything(); });
        if (takes_over_)
            set_crash_hook([this](crash_point point) { machine_.reach(std::string(name_of(point))); });
        if (!machine_.run([this] { return is_over(); }, machine_.now() + longest_run_ns))
            run_.violated("the run has not ended");
        if (lost_)
            (void)machine_.run([this] { return any_process(false) == nullptr; },
                               machine_.now() + longest_end_ns);
        set_crash_hook({});
        for (const auto& f : supervisors_)
            if (!f->error.empty()) run_.violated("the supervisor has failed: " + f->error);
        note_log();
        if (outcome_ || lost_) judge();
        if (run_.link) {
            ++result_.links;
            machine_.note("link: " + run_.link->text());
        }
        result_.violations = run_.violations;
        result_.trace = machine_.trace();
        result_.trace_hash = machine_.trace_hash();
        result_.simulated_ns = machine_.now() - 1'000'000'000'000;
        result_.commits = run_.commits;
        result_.helped = run_.helped;
        result_.processes = machine_.processes().size();
        result_.standbys = run_.takeovers_by_standby;
        result_.tombstones = run_.tombstones;
        result_.disk_waits = run_.disk_waits;
    }

    // ---- supervisors

    [[nodiscard]] bool is_over() const {
        return outcome_ || lost_ || std::any_of(supervisors_.begin(), supervisors_.end(), [](const auto& f) {
                   return !f->error.empty();
               });
    }
    void start_supervisor(bool first) {
        supervisors_.push_back(std::make_unique<fiber>());
        fiber& f = *supervisors_.back();
        f.body = [this, &f, first] { supervise(f, first); };
        if (supervisor_ == nullptr || supervisor_->dead) supervisor_ = &f;
        machine_.start(f);
    }
    /// As run_once() (engine/run.cpp): the folder's lock first, then the run that it finds.
    void supervise(fiber& self, bool first) {
        shm::unique_fd lock;
        for (const u64 until = machine_.now() + 2 * ns_per_s;;) {
            lock = shm::lead_folder(setup_.directory, shm::absent_lock::create);
            if (lock) break;
            if (machine_.now() >= until || is_over()) {
                ++result_.refused;
                return machine_.note("a second supervisor is refused");
            }
            ::usleep(20'000);
        }
        if (is_over()) return;
        supervisor_ = &self;
        if (!first && living_processes(run_.run_id) == 0) {
            machine_.note("the run is lost: none of its processes is left");
            ++result_.lost_runs;
            shm::segment::remove(run_.run_id);
            lost_ = true;
            return;
        }
        console out(printed_.get(), false, false);
        run_extensions none;
        engine e(setup_, run_.run_id, "", 0, out, none,
                 first ? engine::beginning::fresh : engine::beginning::adopt);
        result_.takeovers += first ? 0 : 1;
        engine_ = &e;
        const run_outcome o = e.run();
        out.flush();
        for (const auto& s : e.seats().seats)
            if (s->machine.state() == seat_state::failed) run_.is_absent(setup_.stages[s->stage].spec.name);
        check_words(e.control(), o);
        engine_ = nullptr;
        outcome_ = o;
    }
    void supervisor_died(const fiber& f) {
        if (&f != supervisor_) return;  // one that waits for the lock
        if (engine_ != nullptr)         // what the kernel unmaps; the rest of its heap is leaked
            ::munmap(const_cast<shm::control_block*>(&engine_->control()), sizeof(shm::control_block));
        engine_ = nullptr;
        const u64 after = machine_.below(machine_.below(2) == 0 ? 100 * ns_per_ms : 1500 * ns_per_ms);
        for (u64 k = machine_.below(4) == 0 ? 2 : 1; k > 0; --k)
            machine_.after(after, [this] { start_supervisor(false); });
    }

    /// Adds the lines that the supervisor has printed since the last call to the trace.
    void note_log() {
        char text[1 << 12];
        ssize_t got = 0;
        while (printed_ && (got = ::pread(printed_.get(), text, sizeof text, printed_to_)) > 0) {
            printed_to_ += got;
            for (ssize_t k = 0; k < got; ++k) {
                if (text[k] != '\n')
                    log_line_ += text[k];
                else
                    machine_.note("log: " + std::exchange(log_line_, ""));
            }
        }
    }

    // ---- faults

    void next_fault() {
        if (machine_.now() >= faults_end_ns_ || is_over()) return;
        begin_fault(any_fault());
        machine_.after(
            10 * ns_per_ms + machine_.below(machine_.below(3) == 0 ? 1500 * ns_per_ms : 200 * ns_per_ms),
            [this] { next_fault(); });
    }

    /// Where frames may pass a stage by, that is tried often.
    simulated_fault any_fault() {
        const auto any = static_cast<simulated_fault>(machine_.below(simulated_faults));
        if (machine_.below(3) != 0) return any;
        if (takes_over_) return simulated_fault::kill_supervisor;
        for (const stage_setup& st : setup_.stages) {
            if (st.spec.optional) return simulated_fault::fail;
            if (st.spec.is_port()) return simulated_fault::leave;
        }
        return run_.link ? simulated_fault::lose : any;
    }
    [[nodiscard]] u32 stage_number(const std::string& name) const {
        u32 k = 0;
        while (setup_.stages[k].spec.name != name) ++k;
        return k;
    }
    void open_port(const std::string& name) {
        if (is_over()) return;
        ++result_.programs;
        std::vector<std::string> words{"CAROUSEL_STAGE=" + name};
        if (setup_.stages[stage_number(name)].spec.inputs.empty()) words.push_back("CAROUSEL_WRITES=1");
        machine_.spawn_elsewhere(words);
    }

    simulated_process* any_process(bool of_port) {
        std::vector<simulated_process*> alive;
        for (const auto& [pid, p] : machine_.processes())
            if (!p->exiting && (!of_port || p->elsewhere)) alive.push_back(p.get());
        return alive.empty() ? nullptr : alive[machine_.below(alive.size())];
    }
    const seat& any_seat() { return *engine_->seats().seats[machine_.below(engine_->seats().seats.size())]; }
    const seat& optional_seat() {
        for (const auto& s : engine_->seats().seats)
            if (setup_.stages[s->stage].spec.optional) return *s;
        return any_seat();
    }
    static simulated_stage& stage(simulated_process& p) { return static_cast<simulated_stage&>(*p.runs); }

    void begin_fault(simulated_fault f) {
        if ((options_.faults >> static_cast<u32>(f) & 1U) == 0) return;
        using enum simulated_fault;
        const bool of_process = f <= stop || f == full_disk || f == no_process || f == leave || f == lose;
        if (engine_ == nullptr && !of_process) return;
        simulated_process* const p = any_process(f == simulated_fault::leave);
        const seat* const s = engine_ == nullptr           ? nullptr
                              : f == simulated_fault::fail ? &optional_seat()
                                                           : &any_seat();
        const u64 span =
            50 * ns_per_ms + machine_.below(machine_.below(2) == 0 ? 300 * ns_per_ms : 2500 * ns_per_ms);
        const bool own = f == crash || f == exit || f == hang;
        if ((f <= stop && p == nullptr) || (own && !stage(*p).has_committed())) return;
        if ((f == fail && !setup_.stages[s->stage].spec.optional) ||
            (f == leave && (p == nullptr || !stage(*p).is_port())) || (f == lose && !run_.link) ||
            (f == kill_supervisor && !takes_over_))
            return;
        // A rebuild forgets no frame, but a run that is rebuilt three times without a frame in between ends,
        // as does a run with a port. What it receives without release = "durable" can't be sent again.
        const bool ports = std::any_of(setup_.stages.begin(), setup_.stages.end(),
                                       [](const stage_setup& st) { return st.spec.is_port(); });
        if (f == rebuild && (ports || (run_.link && !run_.link->is_durable()) || rebuilds_++ > 0 ||
                             machine_.disk_full || machine_.no_process_left))
            return;
        ++result_.faults;
        ++result_.faults_of[static_cast<u8>(f)];
        machine_.note(std::string("fault: ") + fault_names[static_cast<u8>(f)] +
                      (f <= stop || f == leave          ? " pid " + std::to_string(p->pid)
                       : f <= kill_command || f == fail ? " " + s->label
                                                        : "") +
                      " for " + std::to_string(span / ns_per_ms) + " ms");
        switch (f) {
            case kill:
                (void)machine_.signal(*p, SIGKILL);
                break;
            case crash:
                if (!p->stopped) machine_.exit(*p, 0, SIGSEGV);
                break;
            case exit:
                if (!p->stopped) machine_.exit(*p, 1, 0);
                break;
            case hang:
                stage(*p).hang();
                // the supervisor ends no program of a port
                if (p->elsewhere) machine_.after(span, [this, p] { (void)machine_.signal(*p, SIGKILL); });
                break;
            case stop:
                (void)machine_.signal(*p, SIGSTOP);
                machine_.after(span, [this, p] { (void)machine_.signal(*p, SIGCONT); });
                break;
            case pause:
                send_order(run::seat_order::stop, s->label);
                machine_.after(span, [this, label = s->label] { send_order(run::seat_order::cont, label); });
                break;
            case restart:
                send_order(run::seat_order::restart, s->label);
                break;
            case down:
                send_order(run::seat_order::down, s->label);
                machine_.after(span, [this, label = s->label] { send_order(run::seat_order::up, label); });
                break;
            case kill_command:
                send(run::kill_request{s->label, machine_.below(2) == 0 ? SIGKILL : SIGSEGV});
                break;
            case full_disk:
                machine_.disk_full = true;
                machine_.after(span, [this] { machine_.disk_full = false; });
                break;
            case no_process:
                machine_.no_process_left = true;
                machine_.after(span, [this] { machine_.no_process_left = false; });
                break;
            case stop_supervisor:
                supervisor_->stopped_until_ns = machine_.now() + span;
                break;
            case rebuild:
                send(run::rebuild_request{});
                break;
            case fail:
                run_.broken.insert(setup_.stages[s->stage].spec.name);
                break;
            case leave:
                stage(*p).leave();
                break;
            case lose:
                run_.link->lose(span);
                break;
            case kill_supervisor:
                if (machine_.below(3) == 0)
                    machine_.kill(*supervisor_);
                else
                    supervisor_->dies_in = 1 + static_cast<u32>(machine_.below(30));
                break;
        }
    }

    void send_order(run::seat_order order, const std::string& label) {
        send(run::seat_request{order, label});
    }

    /// As a command does: its connection lasts until its answer.
    void send(const run::request& request) {
        const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sockaddr_un to{};
        to.sun_family = AF_UNIX;
        const std::string path = run::control_socket(run_.folder);
        std::copy(path.begin(), path.end(), to.sun_path);
        if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 ||
            !shm::send_message(fd, run::to_json(request).dump())) {
            ::close(fd);
            return;
        }
        machine_.touch();
        clients_.insert(fd);
        read_answer(fd, 0);
    }
    void read_answer(int fd, u32 tries) {
        machine_.after(30 * ns_per_ms, [this, fd, tries] {
            shm::message m;
            const shm::receive_status got = shm::receive_message(fd, m);
            if (got == shm::receive_status::would_block && tries < 300) return read_answer(fd, tries + 1);
            if (got == shm::receive_status::ok) machine_.note("answer: " + m.text);
            clients_.erase(fd);
            ::close(fd);
        });
    }

    /// After the last fault.
    void give_back_everything() {
        machine_.note("the last fault is over");
        run_.over = true;
        machine_.disk_full = machine_.no_process_left = false;
        run_.broken.clear();
        for (const auto& f : supervisors_) f->dies_in = 0;
        machine_.after(ns_per_s, [this] { resume_seats(); });
        machine_.after(longest_end_ns, [this] {
            if (!is_over()) run_.violated("the run does not end after the last fault: " + why());
        });
    }
    // Repeated, because a command may be refused while its seat changes.
    void resume_seats() {
        machine_.after(ns_per_s, [this] { resume_seats(); });
        if (engine_ == nullptr) return;
        for (const auto& s : engine_->seats().seats) {
            if (s->machine.paused() || s->machine.state() == seat_state::stopped)
                send_order(run::seat_order::cont, s->label);
            if (s->machine.state() == seat_state::down) send_order(run::seat_order::up, s->label);
        }
    }

    // ---- the liveness oracle

    [[nodiscard]] bool is_withheld() const {
        if (machine_.disk_full || machine_.no_process_left || machine_.now() < supervisor_->stopped_until_ns)
            return true;
        return std::any_of(
            engine_->seats().seats.begin(), engine_->seats().seats.end(), [this](const auto& s) {
                return s->machine.paused() || s->machine.state() == seat_state::down ||
                       (s->machine.state() == seat_state::vacant && !setup_.stages[s->stage].spec.skips());
            });
    }
    [[nodiscard]] std::string why() const {
        std::string text;
        if (engine_ == nullptr) return "its supervisor is not at work";
        for (const auto& s : engine_->seats().seats)
            text += s->label + " is " + name_of(s->machine.state()) +
                    (s->now ? " (pid " + std::to_string(s->now->pid) + "), " : ", ");
        return text + std::to_string(run_.commits) + " commits";
    }
    void watch() {
        if (is_over()) return;
        note_log();
        if (run_.commits != seen_commits_ || engine_ == nullptr || is_withheld()) {
            seen_commits_ = run_.commits;
            moved_ns_ = machine_.now();
            reported_ = false;
        } else if (machine_.now() > moved_ns_ + longest_quiet_ns && !reported_) {
            reported_ = true;
            run_.violated("no frame advances, and nothing is withheld: " + why());
        }
        notice_rebuild();
        notice_failures();
        machine_.after(50 * ns_per_ms, [this] { watch(); });
    }
    /// Frames pass by an optional stage that has failed. It is brought up again when its processes can start.
    void notice_failures() {
        if (engine_ == nullptr) return;
        for (const auto& s : engine_->seats().seats) {
            const std::string& name = setup_.stages[s->stage].spec.name;
            if (s->machine.state() != seat_state::failed) continue;
            run_.is_absent(name);
            if (machine_.below(3) == 0) continue;
            run_.broken.erase(name);
            ++result_.returns;
            send_order(run::seat_order::up, s->label);
        }
    }
    /// After a rebuild a sink gets the frames that its ledger lacks: again, if it was ahead of what the rings
    /// hold.
    void notice_rebuild() {
        if (engine_ == nullptr || engine_->control().created_ns == seen_block_) return;
        if (seen_block_ != 0) {
            const u64 first = engine_->control().first_ring_sequence;
            machine_.note("rebuilt from frame " + std::to_string(first) + " on");
            ++result_.rebuilds;
            for (auto& [sink, frames] : run_.delivered) {
                const auto ledger = telemetry::ledger_reader::open(
                    telemetry::ledger_path(setup_.directory, setup_.stages[sink].spec.name));
                const u64 from = ledger ? ledger->first_undelivered(first) : first;
                frames.erase(frames.lower_bound(from), frames.end());
            }
            // Frames that a reader had before it was absent may be made again and pass it by.
            for (auto& [stage, all] : run_.attendances)
                for (observed_run::attendance& a : all)
                    if (!a.present)
                        a.last = std::min(a.last, first);
                    else  // before the first frame that it was promised, a rebuild may take frames from it
                        a.from =
                            telemetry::frame_claims::load(telemetry::ledger_path(setup_.directory, stage))
                                .first_from(a.from);
        }
        seen_block_ = engine_->control().created_ns;
    }

    // ---- the safety oracles

    void check_words(const shm::control_block& c, const run_outcome& o) {
        if (!o.complete) return;
        for (u32 k = 0; k < c.links; ++k)
            for (u32 slot = 0; slot < c.link[k].slots; ++slot) {
                const ring::slot_word w = ring::slot_word::of(ring::load(c.link[k].slot[slot]));
                if (w.state == ring::slot_state::fill || w.state == ring::slot_state::quarantined)
                    run_.violated("leaked: slot " + std::to_string(slot) + " of ring " + std::to_string(k) +
                                  " is in state " + std::to_string(static_cast<u32>(w.state)));
            }
    }

    void judge() {
        if (outcome_) judge_outcome(*outcome_);
        for (const auto& [pid, p] : machine_.processes())
            if (!p->reaped && !p->elsewhere && !(lost_ && p->exiting))
                run_.violated("leaked: pid " + std::to_string(pid) + " is not reaped");
        if (shm::segment::exists(run_.run_id)) run_.violated("leaked: the control block");
        judge_descriptors();
    }
    void judge_outcome(const run_outcome& o) {
        machine_.note("ends with exit code " + std::to_string(o.exit_code) + ": " + o.ending +
                      ", before frame " + std::to_string(o.end));
        if (!o.complete || o.exit_code != 0) run_.violated("the run fails: " + o.ending);
        if (o.repairs.stalls + o.repairs.damaged + o.repairs.words != 0)
            run_.violated("damage is reported, although no word was damaged");
        const u64 end = std::min<u64>(setup_.end, run_.ends_at);
        if (o.complete && o.end != end) run_.violated("the run ends before frame " + std::to_string(o.end));
        for (u32 k = 0; o.complete && k < setup_.stages.size(); ++k) {
            const stage_setup& st = setup_.stages[k];
            if (st.has_output()) continue;
            const bool may_miss = st.spec.optional || st.spec.skips();
            for (u64 frame = 0; frame < end && !may_miss; frame += st.spec.every)
                if (run_.delivered[k].count(frame) == 0)
                    run_.violated("lost: " + st.spec.name + " has no frame " + std::to_string(frame));
            if (may_miss) judge_attendances(k, end);
            for (const auto& [frame, count] : run_.delivered[k])
                if (frame >= end)
                    run_.violated("beyond: " + st.spec.name + " has frame " + std::to_string(frame));
            judge_ledger(st.spec.name, end);
        }
    }

    /// A reader that frames may pass by misses none while it reads.
    void judge_attendances(u32 k, u64 end) {
        const stage_setup& st = setup_.stages[k];
        for (const observed_run::attendance& a : run_.attendances[st.spec.name])
            for (u64 frame = (a.from + st.spec.every - 1) / st.spec.every * st.spec.every;
                 frame < (a.present ? end
                          : a.any   ? a.last
                                    : 0);
                 frame += st.spec.every)
                if (run_.delivered[k].count(frame) == 0)
                    run_.violated("missed: " + st.spec.name + " has no frame " + std::to_string(frame) +
                                  ", and reads from frame " + std::to_string(a.from) + " on");
    }

    void judge_ledger(const std::string& sink, u64 end) {
        const auto ledger = telemetry::ledger_reader::open(telemetry::ledger_path(run_.folder, sink));
        const bool never_opened = run_.absent.count(sink) > 0 && run_.attendances[sink].empty();
        if (!ledger && never_opened) return;
        if (!ledger) return run_.violated("lost: " + sink + " has no ledger");
        const telemetry::ledger_summary sum = ledger->summarize(end);
        if (sum.lost + sum.repeated + sum.unmarked != 0)
            run_.violated("the ledger of " + sink + " has " + std::to_string(sum.lost) + " lost, " +
                          std::to_string(sum.repeated) + " repeated frames");
    }

    void judge_descriptors() {
        std::set<int> simulated;
        for (const auto& [pid, p] : machine_.processes()) simulated.insert({p->pidfd, p->death});
        u64 leaked = 0;
        for (const int fd : clients_) ::close(fd);
        for (const auto& [pid, p] : machine_.processes())
            if (p->elsewhere) p->runs->ends();
        std::string what;
        for (const int fd : open_descriptors()) {
            if (before_.count(fd) > 0 || simulated.count(fd) > 0) continue;
            ++leaked;
            char name[64] = {};
            (void)!::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name, sizeof name - 1);
            what += (what.empty() ? "" : ", ") + std::string(name, std::strcspn(name, "0123456789"));
        }
        if (leaked > 0) run_.violated("leaked: " + std::to_string(leaked) + " descriptors (" + what + ")");
    }

    simulated_run_options options_;
    scratch_folder files_;
    machine machine_;
    run_setup setup_;
    observed_run run_;
    simulated_run_result result_;
    std::set<int> before_, clients_;  ///< clients_: connections of commands without an answer yet
    shm::unique_fd printed_;          ///< what the supervisor prints
    off_t printed_to_ = 0;
    std::string log_line_;
    std::vector<std::unique_ptr<fiber>> supervisors_;
    fiber* supervisor_ = nullptr;  ///< the one that holds the lock, or held it last
    engine* engine_ = nullptr;
    bool takes_over_ = false, lost_ = false;
    std::optional<run_outcome> outcome_;
    u64 faults_end_ns_ = 0, seen_commits_ = 0, moved_ns_ = 0, rebuilds_ = 0;
    bool reported_ = false;
    u64 seen_block_ = 0;  ///< when the last block was created
};

}  // namespace

std::string simulated_run_result::text(std::size_t lines) const {
    std::string out = plan + "\n";
    for (const std::string& v : violations) out += "  " + v + "\n";
    for (std::size_t k = trace.size() - std::min(lines, trace.size()); k < trace.size(); ++k)
        out += trace[k] + "\n";
    return out;
}

simulated_run_result simulate_run(const simulated_run_options& o) { return simulated_history(o).run(); }

}  // namespace carousel::test
