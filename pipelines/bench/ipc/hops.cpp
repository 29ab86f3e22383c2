// From one process to another and back, by each means.
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/date_time/posix_time/posix_time_types.hpp>
#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/interprocess/sync/interprocess_semaphore.hpp>
#include <cerrno>
#include <chrono>

#include "bench/ipc/run.hpp"
#include "bench/ipc/workers.hpp"
#include "bench/statistics.hpp"
#include "carousel/ipc.hpp"
#include "core/clock.hpp"

namespace carousel::bench {
namespace {

namespace bi = boost::interprocess;
constexpr u64 patience_ns = 5'000'000'000;
constexpr int patience_ms = 5000;

/// One end of a connection: what is sent at one arrives at the other, in order. False: nothing came in 5 s.
struct ends {
    std::function<bool(u32)> send;
    std::function<bool(u32&)> receive;
};
/// Called in each of the two processes, with its side; `first` begins.
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
                    if (++spins % 8192 == 0) {  // a bound, and on one core the other must get it
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

/// Both ends of both ways, in both processes: made before the fork.
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
/// An eventfd counts: the value is what has been sent so far.
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

void measure(const char* means, u32 hops, const connect& to, ipc_bench_result& r, const say_progress& say) {
    say(std::string("hops: ") + means);
    hop_row row;
    row.means = means;
    const u32 warm_up = hops / 10 + 1;
    const pid_t child = start_child([&] {
        const ends e = to(false);
        for (u32 k = 1, v = 0; k <= hops + warm_up; ++k)
            if (!e.receive(v) || v != k || !e.send(k)) return 1;
        return 0;
    });
    const ends e = to(true);
    std::vector<f64> times;
    bool well = true;
    for (u32 k = 1, v = 0; k <= hops + warm_up && well; ++k) {
        const u64 begin = now_ns();
        well = e.send(k) && e.receive(v) && v == k;
        if (k > warm_up) times.push_back(static_cast<f64>(now_ns() - begin) / 2000);
    }
    row.verified = end_child(child) && well && times.size() == hops;
    row.round_trips = times.size();
    row.us = median_of(times);
    std::sort(times.begin(), times.end());
    if (!times.empty()) row.p95_us = times[times.size() * 95 / 100];
    r.hops.push_back(row);
}

}  // namespace

void measure_hops(const ipc_bench_options& o, const std::string& space, ipc_bench_result& r,
                  const say_progress& say) {
    {
        const shared_with_children<two_words> w;
        measure(
            "word, polled", o.hops, [&](bool first) { return by_word(*w, first); }, r, say);
    }
    {
        const shared_with_children<two_words> w;
        measure(
            "futex", o.hops, [&](bool first) { return by_futex(*w, first); }, r, say);
    }
    {
        fd_pair p;
        p.forth[0] = p.forth[1] = ::eventfd(0, EFD_CLOEXEC),
        p.back[0] = p.back[1] = ::eventfd(0, EFD_CLOEXEC);
        measure(
            "eventfd", o.hops, [&](bool first) { return by_eventfd(p, first); }, r, say);
    }
    {
        fd_pair p;
        if (::pipe(p.forth) != 0 || ::pipe(p.back) != 0) throw shm_error("pipes: " + errno_text(errno));
        measure(
            "pipe", o.hops, [&](bool first) { return by_pipe(p, first); }, r, say);
    }
    {
        const shared_with_children<two_semaphores> s;
        measure(
            "Boost interprocess_semaphore", o.hops, [&](bool first) { return by_boost_semaphore(*s, first); },
            r, say);
    }
    const std::string name = "carousel-bench-" + std::to_string(::getpid());
    try {
        const bi::message_queue f(bi::create_only, (name + "-f").c_str(), 16, sizeof(u32)),
            b(bi::create_only, (name + "-b").c_str(), 16, sizeof(u32));
        measure(
            "Boost message_queue", o.hops, [&](bool first) { return by_boost_queue(name, first); }, r, say);
    } catch (const bi::interprocess_exception& e) {  // no /dev/shm: the others don't need it
        say(std::string("hops: no Boost message_queue: ") + e.what());
    }
    bi::message_queue::remove((name + "-f").c_str());
    bi::message_queue::remove((name + "-b").c_str());
    measure(
        "Carousel queue", o.hops, [&](bool first) { return by_carousel_queue(space, "hop", first); }, r, say);
}

}  // namespace carousel::bench
