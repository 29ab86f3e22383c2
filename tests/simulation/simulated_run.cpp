#include "simulated_run.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "core/crash_point.hpp"
#include "os/console.hpp"
#include "runs/run_lock.hpp"
#include "shm/runtime_folder.hpp"
#include "simulated_history.hpp"
#include "simulated_plan.hpp"

namespace carousel::test {

simulated_history::simulated_history(const simulated_run_options& o) : options_(o), machine_(o.seed) {
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
    run_.notice = [this] { note_log(); };
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
    takes_over_ =
        (machine_.below(3) == 0 || o.takes_over) && !ports && !(run_.link && !run_.link->is_durable());
    machine_.supervisors_may_die = takes_over_;
    machine_.died = [this](fiber& f, const std::string&) { supervisor_died(f); };
    machine_.load = [this](simulated_process& p, const std::vector<std::string>& environment) {
        notice_rebuild();  // before its first process delivers a frame
        return std::make_unique<simulated_stage>(run_, p, environment);
    };
}

simulated_run_result simulated_history::run() {
    sigset_t signals;  // the engine blocks signals that end this test
    ::pthread_sigmask(SIG_SETMASK, nullptr, &signals);
    run_all();
    ::pthread_sigmask(SIG_SETMASK, &signals, nullptr);
    return result_;
}

void simulated_history::run_all() {
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
    if (options_.takes_over && takes_over_ && machine_.below(4) == 0)  // while it starts the first processes
        supervisor_->dies_in = 1 + static_cast<u32>(machine_.below(20));
    if (takes_over_)
        set_crash_hook([this](crash_point point) {
            // while it starts the first processes of a new block, whose words have no epoch yet
            if (point == crash_point::block_rebuilt && options_.takes_over && machine_.below(2) == 0)
                supervisor_->dies_in = 2 + static_cast<u32>(machine_.below(12));
            machine_.reach(std::string(name_of(point)));
        });
    if (!machine_.run([this] { return is_over(); }, machine_.now() + longest_run_ns))
        run_.violated("the run has not ended");
    if (lost_)
        (void)machine_.run([this] { return any_process(false) == nullptr; }, machine_.now() + longest_end_ns);
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
    result_.started_over = run_.started_over;
    result_.tombstones = run_.tombstones;
    result_.disk_waits = run_.disk_waits;
}

// ---- supervisors

bool simulated_history::is_over() const {
    return outcome_ || lost_ || std::any_of(supervisors_.begin(), supervisors_.end(), [](const auto& f) {
               return !f->error.empty();
           });
}

void simulated_history::start_supervisor(bool first) {
    supervisors_.push_back(std::make_unique<fiber>());
    fiber& f = *supervisors_.back();
    f.body = [this, &f, first] { supervise(f, first); };
    if (supervisor_ == nullptr || supervisor_->dead) supervisor_ = &f;
    machine_.start(f);
}

void simulated_history::supervise(fiber& self, bool first) {
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
    notice_absences();
    check_words(e.control(), o);
    engine_ = nullptr;
    outcome_ = o;
}

void simulated_history::note_left_processes() {
    faults_when_all_lived_.reset();
    left_by_supervisor_.clear();
    if (simulated_process* const p = machine_.find(std::exchange(dies_with_supervisor_, 0)); p != nullptr)
        (void)machine_.signal(*p, SIGKILL);
    if (engine_ == nullptr) return;
    for (const auto& s : engine_->seats().seats)
        if (simulated_process* const p = s->now ? machine_.find(s->now->pid) : nullptr;
            p != nullptr && !p->exiting && stage(*p).has_committed())
            left_by_supervisor_.push_back(p->pid);
    if (left_by_supervisor_.size() == engine_->seats().seats.size()) faults_when_all_lived_ = result_.faults;
}

void simulated_history::supervisor_died(const fiber& f) {
    if (&f != supervisor_) return;  // one that waits for the lock
    note_left_processes();
    if (engine_ != nullptr) {
        notice_absences();
        // what the kernel unmaps; the rest of its heap is leaked
        ::munmap(const_cast<shm::control_block*>(&engine_->control()), sizeof(shm::control_block));
    }
    engine_ = nullptr;
    const u64 after = machine_.below(machine_.below(2) == 0 ? 100 * ns_per_ms : 1500 * ns_per_ms);
    for (u64 k = machine_.below(4) == 0 ? 2 : 1; k > 0; --k)
        machine_.after(after, [this] { start_supervisor(false); });
}

void simulated_history::note_log() {
    char text[1 << 12];
    ssize_t got = 0;
    while (printed_ && (got = ::pread(printed_.get(), text, sizeof text, printed_to_)) > 0) {
        printed_to_ += got;
        for (ssize_t k = 0; k < got; ++k) {
            if (text[k] != '\n') {
                log_line_ += text[k];
                continue;
            }
            if (log_line_.find("memory of its rings was lost") != std::string::npos) judge_lost_memory();
            if (log_line_.ends_with("the run continues without it")) {
                const std::size_t label = log_line_.find("| ") + 2;
                run_.is_absent(log_line_.substr(label, log_line_.find_first_of(". ", label) - label));
            }
            machine_.note("log: " + std::exchange(log_line_, ""));
        }
    }
}

std::string simulated_run_result::text(std::size_t lines) const {
    std::string out = plan + "\n";
    for (const std::string& v : violations) out += "  " + v + "\n";
    for (std::size_t k = trace.size() - std::min(lines, trace.size()); k < trace.size(); ++k)
        out += trace[k] + "\n";
    return out;
}

simulated_run_result simulate_run(const simulated_run_options& o) { return simulated_history(o).run(); }

}  // namespace carousel::test
