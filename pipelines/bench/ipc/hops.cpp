// Round trips from one process to another, for each mechanism.
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/date_time/posix_time/posix_time_types.hpp>
#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/interprocess/sync/interprocess_semaphore.hpp>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <thread>

#include "bench/ipc/run.hpp"
#include "bench/ipc/workers.hpp"
#include "bench/statistics.hpp"
#include "carousel/ipc.hpp"
#include "core/clock.hpp"
#include "os/subprocess.hpp"

namespace carousel::bench {
namespace {

namespace bi = boost::interprocess;
constexpr u64 patience_ns = 5'000'000'000;
constexpr int patience_ms = 5000;

/// One end of a connection: values that are sent at one end arrive at the other end in order. Both functions
/// return false after a timeout of 5 s.
struct ends {
    std::function<bool(u32)> send;
    std::function<bool(u32&)> receive;
};
/// Called in each of the two processes to create the end of that process; the `first` side sends first.
using connect = std::function<ends(bool first)>;

void futex(std::atomic<u32>& word, int what, u32 value) {
    const timespec second{1, 0};
    ::syscall(SYS_futex, &word, what, value, what == FUTEX_WAIT ? &second : nullptr, nullptr, 0);
}

struct two_words {
    alignas(64) std::atomic<u32> forth;
    alignas(64) std::atomic<u32> back;
};

ends by_word(two_words& w, bool first) {
    auto& out = first ? w.forth : w.back;
    auto& in = first ? w.back : w.forth;
    const auto last = std::make_shared<u32>(0);
    return {[&out](u32 v) {
                out.store(v, std::memory_order_release);
                return true;
            },
            [&in, last](u32& v) {
                for (u64 spins = 0, end = 0; (v = in.load(std::memory_order_acquire)) == *last;)
                    if (++spins % 8192 == 0) {
                        // Checks the timeout, and yields, so that the other thread can also run on a machine
                        // with one core.
                        if (end == 0) end = now_ns() + patience_ns;
                        if (now_ns() > end) return false;
                        ::usleep(0);
                    }
                *last = v;
                return true;
            }};
}
ends by_futex(two_words& w, bool first) {
    auto& out = first ? w.forth : w.back;
    auto& in = first ? w.back : w.forth;
    const auto last = std::make_shared<u32>(0);
    return {[&out](u32 v) {
                out.store(v);
                futex(out, FUTEX_WAKE, 1);
                return true;
            },
            [&in, last](u32& v) {
                for (const u64 end = now_ns() + patience_ns; (v = in.load()) == *last;) {
                    if (now_ns() > end) return false;
                    futex(in, FUTEX_WAIT, *last);
                }
                *last = v;
                return true;
            }};
}

bool readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, patience_ms) == 1;
}

/// The descriptors of both directions. They are made before the fork, so both processes have them.
struct fd_pair {
    int forth[2] = {-1, -1}, back[2] = {-1, -1};
    ~fd_pair() {
        for (const int fd : {forth[0], back[0]}) ::close(fd);
        if (forth[1] != forth[0]) ::close(forth[1]), ::close(back[1]);
    }
};
ends by_pipe(const fd_pair& p, bool first) {
    const int out = first ? p.forth[1] : p.back[1], in = first ? p.back[0] : p.forth[0];
    return {[out](u32 v) { return ::write(out, &v, sizeof v) == sizeof v; },
            [in](u32& v) { return readable(in) && ::read(in, &v, sizeof v) == sizeof v; }};
}
/// An eventfd is a counter: the received value is the number of sends so far.
ends by_eventfd(const fd_pair& p, bool first) {
    const int out = first ? p.forth[0] : p.back[0], in = first ? p.back[0] : p.forth[0];
    const auto got = std::make_shared<u32>(0);
    return {[out](u32) { return ::eventfd_write(out, 1) == 0; },
            [in, got](u32& v) {
                eventfd_t n = 0;
                if (!readable(in) || ::eventfd_read(in, &n) != 0) return false;
                v = *got += static_cast<u32>(n);
                return true;
            }};
}

struct two_semaphores {
    bi::interprocess_semaphore forth{0}, back{0};
};
boost::posix_time::ptime soon() {
    return boost::posix_time::microsec_clock::universal_time() + boost::posix_time::milliseconds(patience_ms);
}
ends by_boost_semaphore(two_semaphores& s, bool first) {
    auto& out = first ? s.forth : s.back;
    auto& in = first ? s.back : s.forth;
    const auto got = std::make_shared<u32>(0);
    return {[&out](u32) {
                out.post();
                return true;
            },
            [&in, got](u32& v) {
                if (!in.timed_wait(soon())) return false;
                v = ++*got;
                return true;
            }};
}
ends by_boost_queue(const std::string& name, bool first) {
    const auto out =
        std::make_shared<bi::message_queue>(bi::open_only, (name + (first ? "-f" : "-b")).c_str());
    const auto in =
        std::make_shared<bi::message_queue>(bi::open_only, (name + (first ? "-b" : "-f")).c_str());
    return {[out](u32 v) { return out->timed_send(&v, sizeof v, 0, soon()); },
            [in](u32& v) {
                bi::message_queue::size_type size = 0;
                unsigned priority = 0;
                return in->timed_receive(&v, sizeof v, size, priority, soon());
            }};
}
ends by_carousel_queue(const std::string& space, const std::string& name, bool first) {
    auto opened = ipc::open(space);
    const auto out =
        std::make_shared<ipc::shared_queue<u32>>(opened.queue<u32>(name + (first ? "-f" : "-b"), 16));
    const auto in =
        std::make_shared<ipc::shared_queue<u32>>(opened.queue<u32>(name + (first ? "-b" : "-f"), 16));
    return {[out](u32 v) {
                out->push(v, std::chrono::milliseconds(patience_ms));
                return true;
            },
            [in](u32& v) {
                v = in->pop(std::chrono::milliseconds(patience_ms));
                return true;
            }};
}

/// The second side: echoes values. Returns false on a wrong value or a timeout.
bool run_responder(const connect& to, u32 number) {
    const ends e = to(false);
    for (u32 k = 1, v = 0; k <= number; ++k)
        if (!e.receive(v) || v != k || !e.send(k)) return false;
    return true;
}
struct requester_result {
    std::vector<f64> us;  ///< one way
    bool well = true;
};
requester_result run_requester(const connect& to, u32 number, u32 warm_up) {
    const ends e = to(true);
    requester_result a;
    for (u32 k = 1, v = 0; k <= number && a.well; ++k) {
        const u64 begin = now_ns();
        a.well = e.send(k) && e.receive(v) && v == k;
        if (k > warm_up) a.us.push_back(static_cast<f64>(now_ns() - begin) / 2000);
    }
    return a;
}

/// Measures between two processes, then between two threads of this process as the reference without a
/// process boundary. `to` connects the two processes, `in_process` connects the two threads.
void measure(const char* means, u32 hops, const connect& to, const connect& in_process, ipc_bench_result& r,
             const progress_function& report_progress) {
    report_progress(std::string("hops: ") + means);
    hop_row row;
    row.means = means;
    const u32 warm_up = hops / 10 + 1, number = hops + warm_up;
    const pid_t child = start_child([&] { return run_responder(to, number) ? 0 : 1; });
    requester_result a = run_requester(to, number, warm_up);
    row.verified = end_child(child) && a.well && a.us.size() == hops;
    row.round_trips = a.us.size();
    row.us = median_of(a.us);
    std::sort(a.us.begin(), a.us.end());
    if (!a.us.empty()) row.p95_us = a.us[a.us.size() * 95 / 100];
    bool responder_ok = false;
    std::thread second([&] { responder_ok = run_responder(in_process, number); });
    const requester_result peer = run_requester(in_process, number, warm_up);
    second.join();
    row.verified = row.verified && responder_ok && peer.well;
    row.threads_us = median_of(peer.us);
    r.hops.push_back(row);
}

/// MPI_Send between two ranks that mpirun starts: carousel-bench-mpi exists only if Open MPI was installed at
/// build time.
void measure_mpi(const ipc_bench_options& o, const std::string& programs, ipc_bench_result& r,
                 const progress_function& report_progress) {
    constexpr const char* means = "MPI_Send (Open MPI)";
    const std::string program = programs + "/carousel-bench-mpi";
    if (::access(program.c_str(), X_OK) != 0) {
        r.missing[means] = "this build was made without Open MPI, so it has no carousel-bench-mpi";
        return;
    }
    report_progress(std::string("hops: ") + means);
    constexpr u32 limit_ms = 60'000;
    const supervisor::subprocess_result got = supervisor::run_subprocess(
        {"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun", "--oversubscribe",
         "--bind-to", "none", "--mca", "plm", "isolated", "-n", "2", program, std::to_string(o.hops)},
        "", limit_ms);
    hop_row row;
    u64 wrong = 0;
    std::istringstream text(got.output);
    if (!got.succeeded() || !(text >> row.us >> row.p95_us >> row.round_trips >> wrong)) {
        r.missing[means] = "mpirun could not start two ranks here: " + got.ending(limit_ms);
        return;
    }
    row.means = means;
    row.verified = wrong == 0 && row.round_trips == o.hops;
    r.hops.push_back(row);
}

void pin_to(int processor) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    ::sched_setaffinity(0, sizeof only, &only);
}
/// Measures the time that a word takes from one processor to another, with two polling threads, each pinned
/// to a processor of its own. Measures several pairs of processors and returns the least time, or 0 if there
/// is only one processor.
f64 word_floor_us() {
    constexpr u32 number = 2000, warm_up = 200, most_pairs = 7;
    cpu_set_t mine;
    if (::sched_getaffinity(0, sizeof mine, &mine) != 0) return 0;
    std::vector<int> processors;
    for (int k = 0; k < CPU_SETSIZE && processors.size() <= most_pairs; ++k)
        if (CPU_ISSET(k, &mine)) processors.push_back(k);
    f64 least = 0;
    for (std::size_t k = 1; k < processors.size(); ++k) {
        const shared_with_children<two_words> w;
        requester_result a;
        std::thread second([&] {
            pin_to(processors[k]);
            (void)run_responder([&](bool first) { return by_word(*w, first); }, number);
        });
        std::thread one([&] {
            pin_to(processors[0]);
            a = run_requester([&](bool first) { return by_word(*w, first); }, number, warm_up);
        });
        one.join(), second.join();
        const f64 us = a.well ? median_of(a.us) : 0;
        if (us > 0 && (least == 0 || us < least)) least = us;
    }
    return least;
}

/// Calls measure() with two connections: one for the two processes and one for the two threads.
template <class State>
void measure_with(const char* means, u32 hops, ends (*side)(State&, bool), ipc_bench_result& r,
                  const progress_function& report_progress) {
    const shared_with_children<State> crossed, local;
    measure(
        means, hops, [&](bool first) { return side(*crossed, first); },
        [&](bool first) { return side(*local, first); }, r, report_progress);
}

}  // namespace

void measure_hops(const ipc_bench_options& o, const std::string& space, const std::string& programs,
                  ipc_bench_result& r, const progress_function& report_progress) {
    report_progress("hops: the floor");
    r.hop_floor_us = word_floor_us();
    measure_with("word, polled", o.hops, by_word, r, report_progress);
    measure_with("futex", o.hops, by_futex, r, report_progress);
    {
        fd_pair p;
        p.forth[0] = p.forth[1] = ::eventfd(0, EFD_CLOEXEC),
        p.back[0] = p.back[1] = ::eventfd(0, EFD_CLOEXEC);
        const auto side = [&](bool first) { return by_eventfd(p, first); };
        measure("eventfd", o.hops, side, side, r, report_progress);
    }
    {
        fd_pair p;
        if (::pipe(p.forth) != 0 || ::pipe(p.back) != 0) throw shm_error("pipes: " + errno_text(errno));
        const auto side = [&](bool first) { return by_pipe(p, first); };
        measure("pipe", o.hops, side, side, r, report_progress);
    }
    measure_with("Boost interprocess_semaphore", o.hops, by_boost_semaphore, r, report_progress);
    const std::string name = "carousel-bench-" + std::to_string(::getpid());
    try {
        const bi::message_queue f(bi::create_only, (name + "-f").c_str(), 16, sizeof(u32)),
            b(bi::create_only, (name + "-b").c_str(), 16, sizeof(u32));
        const auto side = [&](bool first) { return by_boost_queue(name, first); };
        measure("Boost message_queue", o.hops, side, side, r, report_progress);
    } catch (const bi::interprocess_exception& e) {  // there is no /dev/shm; only this mechanism needs it
        r.missing["Boost message_queue"] = e.what();
    }
    bi::message_queue::remove((name + "-f").c_str());
    bi::message_queue::remove((name + "-b").c_str());
    measure(
        "Carousel queue", o.hops, [&](bool first) { return by_carousel_queue(space, "hop", first); },
        [&](bool first) { return by_carousel_queue(space, "home", first); }, r, report_progress);
    measure_mpi(o, programs, r, report_progress);
}

}  // namespace carousel::bench
